//! `vjp` reaches another callable by its path, also where it is exported again.
#![deny(warnings)]
use jax_callable::prelude::*;

mod inner {
    use jax_callable::prelude::*;

    #[jax_callable]
    pub fn backward(x: cpu::Array<f32, 1>, ct_y: cpu::Array<f32, 1>, d_x: cpu::ArrayMut<f32, 1>) {
        let _ = (x, ct_y, d_x);
    }
}
pub use inner::backward;

#[jax_callable(vjp = inner::backward)]
fn forward(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

#[jax_callable(vjp = backward)]
fn again(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

// Derivatives of derivatives, each of the one before; the types by aliases.
type Input<'a> = cpu::Array<'a, [f64; 2], 1>;
type Output<'a> = cpu::ArrayMut<'a, [f64; 2], 1>;

#[jax_callable(vjp = second, in_out = y)]
fn first(
    cx: &cpu::Context,
    k: i32,
    names: &[u8],
    x: Input,
    n: cpu::Array<i32, 0>,
    y: Output,
    z: cpu::ArrayMut<f32, 0>,
) {
    let _ = (cx, k, names, x, n, y, z);
}

#[jax_callable(vjp = third)]
fn second(
    ct_y: Input,
    y: Input,
    out_y: Input,
    z: cpu::Array<f32, 0>,
    out_z: cpu::Array<f32, 0>,
    k: i32,
    n: cpu::Array<i32, 0>,
    #[dims(k)] space: cpu::Scratch<f32, 1>,
    d_y: Output,
    d_x: Output,
) {
    let _ = (ct_y, y, out_y, z, out_z, k, n, space, d_y, d_x);
}

// `d_y` is an output of `second`, and what `out_y` has the name of is one of its inputs.
#[jax_callable]
fn third(
    out_y: Input,
    out_d_x: Input,
    d_x: Input,
    ct_d_y: Input,
    ct_d_x: Input,
    d_ct_y: Output,
    d_y: Output,
    d_out_y: Output,
    d_z: cpu::ArrayMut<f32, 0>,
    d_out_z: cpu::ArrayMut<f32, 0>,
) {
    let _ = (out_y, out_d_x, d_x, ct_d_y, ct_d_x);
    let _ = (d_ct_y, d_y, d_out_y, d_z, d_out_z);
}

fn main() {
    #[jax_callable]
    fn local(ct_y: cpu::Array<f32, 1>, d_x: cpu::ArrayMut<f32, 1>) {
        let _ = (ct_y, d_x);
    }
    #[jax_callable(vjp = local)]
    fn local_too(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
        let _ = (x, y);
    }
}
