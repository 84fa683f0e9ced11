#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(output_dims = -1)]
fn f(y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
