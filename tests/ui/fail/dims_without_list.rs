#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(#[dims] x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
