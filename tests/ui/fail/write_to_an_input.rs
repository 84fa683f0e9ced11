#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(mut x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    x[0] = 1.0;
}

fn main() {}
