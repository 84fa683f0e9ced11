#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Point {
    x: f32,
}

#[jax_callable]
fn f(point: Point, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
