#![allow(unused_variables)]
use jax_callable::prelude::*;

struct Solver;

impl Solver {
    #[jax_callable]
    fn step(&self, x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}
}

fn main() {}
