#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Plan;

struct Failure;

impl Plan {
    fn new() -> Plan {
        Plan
    }

    fn open() -> std::result::Result<Plan, Failure> {
        Err(Failure)
    }
}

#[jax_callable(state = Plan::new())]
fn other(table: &State<Vec<f32>>, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable(state = Plan::open())]
fn error(plan: &State<Plan>, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable(state = Plan::new(k))]
fn arguments(k: i32, plan: &State<Plan>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
