#![allow(unused_variables)]
use jax_callable::prelude::*;

#[derive(Clone, Copy)]
struct Point {
    x: f32,
}

#[jax_callable]
fn f(x: cpu::Array<Point, 1>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
