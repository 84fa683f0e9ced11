#![allow(unused_variables)]
use jax_callable::prelude::*;

type Shared = State<Vec<u8>>;

#[jax_callable]
fn f(table: &Shared, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
