#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(vjp = backward)]
fn forward(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable]
fn backward(x: cpu::Array<f32, 1>, y: cpu::Array<f32, 1>, d_x: cpu::ArrayMut<f32, 1>) {}

fn main() {}
