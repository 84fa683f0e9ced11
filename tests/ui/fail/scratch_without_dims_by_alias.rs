#![allow(unused_variables)]
use jax_callable::prelude::*;

type Workspace<'a> = cpu::Scratch<'a, f32, 1>;

#[jax_callable]
fn f(x: cpu::Array<f32, 1>, w: Workspace, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
