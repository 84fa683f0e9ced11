#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Plan;

impl Plan {
    fn new(_: &cuda::Context) -> Plan {
        Plan
    }
}

#[jax_callable(state = Plan::new(cx))]
fn other(cx: &cuda::Context, table: &cuda::PerDevice<Vec<f32>>, y: cuda::ArrayMut<f32, 1>) {}

fn main() {}
