#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Plan;

#[jax_callable]
fn f(plan: &State<Plan>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
