#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(in_out = y)]
#[jax_callable]
fn f(y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
