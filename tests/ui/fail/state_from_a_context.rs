#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Plan;

#[jax_callable(state = Plan::new(cx))]
fn f(cx: &cuda::Context, plan: &State<Plan>, y: cuda::ArrayMut<f32, 1>) {}

fn main() {}
