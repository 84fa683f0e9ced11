#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(batch_dims = n)]
fn f(#[dims(n)] x: cpu::Array<f32, 1>, #[dims(n, n + 1)] y: cpu::ArrayMut<f32, 2>) {}

fn main() {}
