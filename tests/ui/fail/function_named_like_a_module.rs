#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn cpu(x: cpu::Array<f32, 1>, y: Output) {}

type Output<'a> = jax_callable::cpu::ArrayMut<'a, f32, 1>;

fn main() {}
