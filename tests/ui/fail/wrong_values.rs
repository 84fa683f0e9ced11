#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(
    name = f,
    num_outputs = "one",
    in_out = 3,
    graph_mode = 2,
    has_side_effect = 1,
    modules = "kernels",
    state = 5,
    vjp = "g",
)]
fn f(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
