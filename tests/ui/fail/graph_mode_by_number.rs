#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(graph_mode = 2)]
fn f(x: cuda::Array<f32, 1>, y: cuda::ArrayMut<f32, 1>) {}

fn main() {}
