#![allow(unused_variables)]
use jax_callable::prelude::*;

type Input<'a> = cpu::Array<'a, f32, 1>;
type Output<'a> = cpu::ArrayMut<'a, f32, 1>;

#[jax_callable]
fn f(x: Input, y: Output, z: Input) {}

fn main() {}
