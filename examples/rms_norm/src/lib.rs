//! Root-mean-square normalisation, and its derivative. `run.py` trains a network with it in JAX.

use jax_callable::prelude::*;

/// y <- scale x with scale <- 1 / sqrt(mean of x^2 + eps).
///
/// `scale` is for the derivative, which takes no `ct_scale`: to JAX it is a constant.
#[jax_callable(vjp = rms_norm_vjp)]
fn rms_norm(
    eps: f32,
    #[dims(n)] x: cpu::Array<f32, 1>,
    #[dims(n)] mut y: cpu::ArrayMut<f32, 1>,
    #[dims()] mut scale: cpu::ArrayMut<f32, 0>,
) {
    let factor = (dot(&x, &x) / x.len() as f32 + eps).sqrt().recip();
    for (y, x) in y.iter_mut().zip(x.iter()) {
        *y = factor * x;
    }
    scale[[]] = factor;
}

/// d_x <- scale (ct_y - y mean of (y ct_y)), which needs neither `x` nor `eps`.
#[jax_callable]
fn rms_norm_vjp(
    #[dims(n)] y: cpu::Array<f32, 1>,
    scale: cpu::Array<f32, 0>,
    #[dims(n)] ct_y: cpu::Array<f32, 1>,
    #[dims(n)] mut d_x: cpu::ArrayMut<f32, 1>,
) {
    let mean = dot(&y, &ct_y) / y.len() as f32;
    for ((d_x, y), ct_y) in d_x.iter_mut().zip(y.iter()).zip(ct_y.iter()) {
        *d_x = scale[[]] * (ct_y - y * mean);
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
