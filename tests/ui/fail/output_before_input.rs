#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(y: cpu::ArrayMut<f32, 1>, x: cpu::Array<f32, 1>, k: f32) {}

fn main() {}
