#![allow(unused_variables)]
use jax_callable::prelude::*;

mod inner {
    use jax_callable::prelude::*;

    #[jax_callable]
    pub fn backward(
        eps: f64,
        name: i32,
        counts: [i32; 3],
        x: cpu::Array<f64, 1>,
        w: cpu::Array<[f32; 2], 1>,
        k: f32,
        ct_y: cpu::Array<f32, 2>,
        d_x: cpu::ArrayMut<f64, 1>,
        d_w: cpu::ArrayMut<[f32; 3], 1>,
    ) {
    }
}

#[jax_callable(vjp = inner::backward)]
fn forward(
    eps: f32,
    name: &str,
    counts: &[i32],
    x: cpu::Array<f32, 1>,
    w: cpu::Array<[f32; 3], 1>,
    k: cpu::Array<f32, 0>,
    y: cpu::ArrayMut<f32, 1>,
) {
}

fn main() {}
