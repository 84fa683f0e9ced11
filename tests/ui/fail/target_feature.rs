#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
#[target_feature(enable = "avx")]
fn f(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
