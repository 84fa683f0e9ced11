#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Failure;

#[jax_callable]
fn f(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) -> Result<(), Failure> {
    Err(Failure)
}

fn main() {}
