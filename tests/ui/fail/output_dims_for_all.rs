#![allow(unused_variables)]
use jax_callable::prelude::*;

type Real = f64;

// One mistake, though two outputs have it.
#[jax_callable(output_dims = z.dim(0))]
fn known(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>, z: cpu::ArrayMut<f32, 1>) {}

#[jax_callable(output_dims = k)]
fn asked(k: Real, x: cpu::ArrayMut<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
