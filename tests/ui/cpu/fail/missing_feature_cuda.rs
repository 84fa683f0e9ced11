#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(cx: &cuda::Context, x: cuda::Array<f32, 1>, y: cuda::ArrayMut<f32, 1>) {}

#[jax_callable(vjp = f)]
fn g(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
