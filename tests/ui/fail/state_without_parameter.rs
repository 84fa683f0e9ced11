#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Plan;

#[jax_callable(state = Plan::new(k))]
fn f(k: i32, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
