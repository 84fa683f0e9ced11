#![allow(unused_variables)]
use jax_callable::prelude::*;

type Shared = State<Vec<u8>>;
type Count = u32;
type Input<'a> = cpu::Array<'a, f32, 1>;

#[jax_callable]
fn no_constructor(table: &Shared, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable(state = Vec::new())]
fn two(first: &State<Vec<u8>>, second: &Shared, y: cpu::ArrayMut<f32, 1>) {}

#[jax_callable(state = Vec::from(x.as_slice()))]
fn array(x: Input, table: &State<Vec<f32>>, y: cpu::ArrayMut<f32, 1>) {}

type Cx = cuda::Context;

#[jax_callable(state = Plan::new(cx))]
fn context(cx: &Cx, plan: &State<Plan>, y: cuda::ArrayMut<f32, 1>) {}

struct Plan;

impl Plan {
    fn new(_: &Cx) -> Plan {
        Plan
    }
}

fn main() {}
