#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(#[dims(n)] x: cpu::Array<f32, 1>, #[dims(2n)] y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
