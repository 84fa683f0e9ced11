#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(y: cuda::ArrayMut<f32, 1>) {}

fn main() {}
