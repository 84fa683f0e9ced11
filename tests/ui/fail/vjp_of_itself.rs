#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(vjp = forward)]
fn forward(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
