#![allow(unused_variables)]
use jax_callable::prelude::*;

// Stands in for the real types: the attribute goes by their names.
#[allow(dead_code)]
mod cuda {
    pub struct Array<T, const N: usize>(T);
    pub struct ArrayMut<T, const N: usize>(T);
}

#[jax_callable(graph_mode = WarpStagedEx, stage_out = x)]
fn f(x: cuda::Array<f32, 1>, y: cuda::ArrayMut<f32, 1>) {}

fn main() {}
