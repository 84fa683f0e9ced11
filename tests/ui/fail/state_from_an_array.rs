#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Plan;

#[jax_callable(state = Plan::new(k, &x[..]))]
fn f(k: i32, x: cpu::Array<f32, 1>, plan: &State<Plan>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
