#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(x: cpu::Array<f32, 1>) -> f32 {
    0.0
}

fn main() {}
