#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(state = Vec::new())]
fn f(first: &State<Vec<f32>>, second: &State<Vec<f32>>, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable(state = Vec::new())]
fn mixed(
    all: &State<Vec<f32>>,
    one: &cuda::PerDevice<Vec<f32>>,
    y: cuda::ArrayMut<f32, 1>,
) {}

fn main() {}
