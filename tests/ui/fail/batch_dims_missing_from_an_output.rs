#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(batch_dims = n)]
fn f(#[dims(n)] x: cpu::Array<f32, 1>, #[dims(4)] y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
