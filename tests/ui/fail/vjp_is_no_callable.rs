#![allow(unused_variables)]
use jax_callable::prelude::*;

fn backward() {}

#[jax_callable(vjp = backward)]
fn forward(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
