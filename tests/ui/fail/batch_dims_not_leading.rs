#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(batch_dims = m)]
fn f(#[dims(n, m)] x: cpu::Array<f32, 2>, #[dims(m, n)] y: cpu::ArrayMut<f32, 2>) {}

fn main() {}
