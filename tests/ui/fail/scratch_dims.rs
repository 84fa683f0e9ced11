#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn unbound(
    #[dims(n)] x: cpu::Array<f32, 1>,
    #[dims(m)] w: cpu::Scratch<f32, 1>,
    y: cpu::ArrayMut<f32, 1>,
) {
}

#[jax_callable]
fn output(
    x: cpu::Array<f32, 1>,
    #[dims(y.dim(0))] w: cpu::Scratch<f32, 1>,
    y: cpu::ArrayMut<f32, 1>,
) {
}

#[jax_callable]
fn count(x: cpu::Array<f32, 1>, #[dims(3, 4)] w: cpu::Scratch<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable(in_out = w)]
fn in_out(x: cpu::Array<f32, 1>, #[dims(3)] w: cpu::Scratch<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable]
fn platform(x: cpu::Array<f32, 1>, #[dims(3)] w: cuda::Scratch<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable]
fn only_scratch(x: cpu::Array<f32, 1>, #[dims(3)] w: cpu::Scratch<f32, 1>) {}

fn main() {}
