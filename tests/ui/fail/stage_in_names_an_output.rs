#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(graph_mode = WarpStaged, stage_in = y)]
fn f(x: cuda::Array<f32, 1>, y: cuda::ArrayMut<f32, 1>) {}

fn main() {}
