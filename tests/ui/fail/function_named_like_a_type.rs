#![allow(non_snake_case, unused_variables)]
use jax_callable::cpu::{self, *};
use jax_callable::jax_callable;

#[jax_callable]
fn Array(x: Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
