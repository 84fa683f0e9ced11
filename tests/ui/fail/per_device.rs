#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Plan;

#[jax_callable(state = Plan::new(k))]
fn on_the_cpu(k: i32, plan: &cuda::PerDevice<Plan>, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable]
fn no_constructor(plan: &cuda::PerDevice<Plan>, y: cuda::ArrayMut<f32, 1>) {}

fn main() {}
