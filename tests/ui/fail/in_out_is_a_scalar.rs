#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(in_out = k)]
fn f(k: f32, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
