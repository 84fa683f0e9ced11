#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(batch_dims = m)]
fn f(#[dims(n)] x: cpu::Array<f32, 1>, #[dims(n)] y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
