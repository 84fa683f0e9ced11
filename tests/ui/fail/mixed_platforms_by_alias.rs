#![allow(unused_variables)]
use jax_callable::prelude::*;

type Input<'a> = cuda::Array<'a, f32, 1>;

#[jax_callable]
fn f(x: Input, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
