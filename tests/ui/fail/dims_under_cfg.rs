#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(#[cfg_attr(unix, dims(4))] y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
