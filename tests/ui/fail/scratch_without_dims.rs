#![allow(unused_variables)]
use jax_callable::prelude::*;

// Stands in for the real type: the attribute goes by its name.
#[allow(dead_code)]
struct Scratch<T, const N: usize>(T);

#[jax_callable]
fn f(x: cpu::Array<f32, 1>, w: Scratch<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
