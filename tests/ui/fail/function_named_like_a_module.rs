#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn cpu(x: cpu::Array<f32, 1>, y: jax_callable::cpu::ArrayMut<f32, 1>) {}

fn main() {}
