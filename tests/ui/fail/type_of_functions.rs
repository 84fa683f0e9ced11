#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
type F = fn(cpu::ArrayMut<f32, 1>);

fn main() {}
