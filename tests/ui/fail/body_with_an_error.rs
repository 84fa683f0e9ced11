#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(in_out = "z")]
fn f(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let n: i32 = "n";
}

fn main() {}
