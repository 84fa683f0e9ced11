#![allow(unused_variables)]
use jax_callable::prelude::*;

type Kept = cpu::Array<'static, f32, 1>;

#[jax_callable]
fn f(x: Kept, y: cpu::ArrayMut<f32, 1>) {}

type Name = &'static str;

#[jax_callable]
fn g(name: Name, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
