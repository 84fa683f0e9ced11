//! The Rust side of the benchmarks.

use jax_callable::prelude::*;

/// z <- a x + b y: the same as `cpp/handlers.cc` does through `ffi.h`.
#[jax_callable]
fn axpby(
    a: f32,
    b: f32,
    x: cpu::Array<f32, 1>,
    y: cpu::Array<f32, 1>,
    mut z: cpu::ArrayMut<f32, 1>,
) {
    for ((z, x), y) in z.iter_mut().zip(x.iter()).zip(y.iter()) {
        *z = a * x + b * y;
    }
}
