#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(k: f32, x: cpu::Array<f32, 1>, #[dims(k)] y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
