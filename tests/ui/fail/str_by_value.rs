#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(name: str, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
