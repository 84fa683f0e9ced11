#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Plan;

impl Plan {
    fn new(k: u32) -> Plan {
        Plan
    }
}

#[jax_callable(state = Plan::new(k))]
fn f(k: u32, plan: State<Plan>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
