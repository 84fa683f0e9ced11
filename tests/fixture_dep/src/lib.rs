//! A crate that the fixture links and never names.

use jax_callable::prelude::*;

/// out <- 10 x. The fixture has a function of this name too.
#[jax_callable]
fn scale(x: cpu::Array<f32, 1>, mut out: cpu::ArrayMut<f32, 1>) {
    for (out, x) in out.iter_mut().zip(x.iter()) {
        *out = 10.0 * x;
    }
}

/// out <- x + 1. Only this crate has it.
#[jax_callable]
fn only_in_dep(x: cpu::Array<f32, 1>, mut out: cpu::ArrayMut<f32, 1>) {
    for (out, x) in out.iter_mut().zip(x.iter()) {
        *out = x + 1.0;
    }
}
