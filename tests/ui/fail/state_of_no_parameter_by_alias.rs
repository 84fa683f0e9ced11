#![allow(unused_variables)]
use jax_callable::prelude::*;

type Count = u32;

#[jax_callable(state = u32::from(k))]
fn f(k: Count, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
