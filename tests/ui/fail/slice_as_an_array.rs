#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(#[dims(n)] x: &[f32], #[dims(n)] y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
