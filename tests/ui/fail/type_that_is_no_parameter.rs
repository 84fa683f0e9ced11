#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(a: Vec<f32>, x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable]
fn h(x: &[String], y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
