#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(in_out = z)]
fn f(
    a: Vec<f32>,
    x: cpu::Array<String, 1>,
    b: &mut f32,
    c: impl Copy,
    d: &cpu::Array<f32, 1>,
    y: cpu::ArrayMut<f32, 1>,
) {
}

fn main() {}
