#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(x: cpu::Array<[[f32; 0]; 2], 1>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
