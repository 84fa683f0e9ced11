#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f<'a, const N: usize>(x: cpu::Array<f32, N>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
