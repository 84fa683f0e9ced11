#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) -> Result<f32> {
    Ok(0.0)
}

fn main() {}
