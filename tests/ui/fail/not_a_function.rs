#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
struct Saxpy {
    a: f32,
}

fn main() {}
