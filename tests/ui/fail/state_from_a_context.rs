#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Plan;

#[jax_callable(state = Plan::new(cx))]
fn f(cx: &cpu::Context, plan: &State<Plan>, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable(state = Plan::new(cx))]
fn on_a_gpu(cx: &cuda::Context, plan: &State<Plan>, y: cuda::ArrayMut<f32, 1>) {}

fn main() {}
