//! `vjp` reaches another callable by its path, also where it is exported again.
#![deny(warnings)]
use jax_callable::prelude::*;

mod inner {
    use jax_callable::prelude::*;

    #[jax_callable]
    pub fn backward(
        x: cpu::Array<f32, 1>,
        ct_y: cpu::Array<f32, 1>,
        d_x: cpu::ArrayMut<f32, 1>,
    ) {
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

// Two that name each other.
#[jax_callable(vjp = pong)]
fn ping(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

#[jax_callable(vjp = ping)]
fn pong(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

fn main() {
    #[jax_callable]
    fn local(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
        let _ = (x, y);
    }
    #[jax_callable(vjp = local)]
    fn local_too(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
        let _ = (x, y);
    }
}
