#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
async fn f(x: cpu::Array<'_, f32, 1>, y: cpu::ArrayMut<'_, f32, 1>) {}

fn main() {}
