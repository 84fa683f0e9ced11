#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(vjp = backward)]
fn forward(
    x: cpu::Array<f32, 1>,
    n: cpu::Array<i32, 0>,
    w: cpu::Array<[[f64; 3]; 2], 2>,
    y: cpu::ArrayMut<f32, 1>,
) {
}

#[jax_callable]
fn backward(w: cpu::Array<[[f64; 3]; 2], 2>, ct_y: cpu::Array<f32, 1>, d_x: cpu::ArrayMut<f32, 1>) {
}

fn main() {}
