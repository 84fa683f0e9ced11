#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(state = Vec::new())]
fn f(first: &State<Vec<f32>>, second: &cuda::PerDevice<Vec<f32>>, y: cuda::ArrayMut<f32, 1>) {}

fn main() {}
