#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(in_out = y, vjp = backward)]
fn forward(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable(in_out = (ct_y, d_x))]
fn backward(ct_y: cpu::ArrayMut<f32, 1>, d_x: cpu::ArrayMut<f32, 1>, d_y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
