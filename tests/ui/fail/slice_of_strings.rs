#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(names: &[String], y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
