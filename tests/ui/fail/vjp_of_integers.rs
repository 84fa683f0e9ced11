#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(vjp = backward)]
fn forward(
    x: cpu::Array<f32, 1>,
    n: cpu::Array<i32, 1>,
    y: cpu::ArrayMut<f32, 1>,
    m: cpu::ArrayMut<Pred, 1>,
) {
}

#[jax_callable]
fn backward(
    ct_y: cpu::Array<f32, 1>,
    ct_m: cpu::Array<Pred, 1>,
    d_x: cpu::ArrayMut<f32, 1>,
    d_n: cpu::ArrayMut<i32, 1>,
) {
}

fn main() {}
