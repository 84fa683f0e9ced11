#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Outcome;

#[jax_callable]
fn f(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) -> Outcome {
    Outcome
}

fn main() {}
