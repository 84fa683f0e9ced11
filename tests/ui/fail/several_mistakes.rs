#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable(in_out = "z", num_outputs = 0, grph_mode = Jax, vmap_method = "all")]
unsafe fn f(
    #[dims(n, m)] x: cpu::Array<f32, 1>,
    (a, b): (f32, f32),
    lambda: f32,
    #[dims(x.dim(4), 3 / 0)] y: cpu::ArrayMut<f32, 2>,
) -> f32 {
    0.0
}

fn main() {}
