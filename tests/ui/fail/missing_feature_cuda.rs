#![allow(unused_variables)]
// What the prelude has without the feature.
use jax_callable::missing::cuda;
use jax_callable::prelude::jax_callable;

#[jax_callable]
fn f(y: cuda::ArrayMut<f32, 1>) {}

fn main() {}
