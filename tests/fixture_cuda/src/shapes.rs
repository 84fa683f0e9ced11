//! Shapes: reductions, matrices, packed elements, in-outs beside outputs.

use super::{grid, kernels};
use jax_callable::cuda::LaunchConfig;
use jax_callable::prelude::*;

const ONE_THREAD: LaunchConfig = LaunchConfig {
    grid_dim: (1, 1, 1),
    block_dim: (1, 1, 1),
    shared_mem_bytes: 0,
};

/// The sum of all elements: what must not be folded under vmap.
#[jax_callable]
fn sum(
    cx: &cuda::Context,
    x: cuda::Array<f32, 1>,
    #[dims()] mut total: cuda::ArrayMut<f32, 0>,
) -> Result<()> {
    // SAFETY: the kernel reads `n` elements and writes one.
    unsafe { kernels::sum.launch(cx, ONE_THREAD, u32::try_from(x.len())?, &x, &mut total) }
}

/// c <- a b
#[jax_callable]
fn matmul(
    cx: &cuda::Context,
    #[dims(n, k)] a: cuda::Array<f32, 2>,
    #[dims(k, m)] b: cuda::Array<f32, 2>,
    #[dims(n, m)] mut c: cuda::ArrayMut<f32, 2>,
) -> Result<()> {
    let Some((_, config)) = grid(c.len())? else {
        return Ok(());
    };
    let [[n, k], [_, m]] = [a.shape(), b.shape()].map(|shape| shape.map(|dim| dim as u32));
    // SAFETY: the arrays have these shapes.
    unsafe { kernels::matmul.launch(cx, config, n, k, m, &a, &b, &mut c) }
}

/// c <- a x b, for vectors of three packed in an element.
#[jax_callable]
fn cross(
    cx: &cuda::Context,
    #[dims(n)] a: cuda::Array<[f32; 3], 1>,
    #[dims(n)] b: cuda::Array<[f32; 3], 1>,
    #[dims(n)] mut c: cuda::ArrayMut<[f32; 3], 1>,
) -> Result<()> {
    let Some((n, config)) = grid(c.len())? else {
        return Ok(());
    };
    // SAFETY: the arrays have `n` elements.
    unsafe { kernels::cross.launch(cx, config, n, &a, &b, &mut c) }
}

/// y <- a x + y in place, and z <- 2 x: an in-out beside an output.
#[jax_callable(in_out = y)]
fn saxpy_and_double(
    cx: &cuda::Context,
    a: f32,
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] mut y: cuda::ArrayMut<f32, 1>,
    #[dims(n)] mut z: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    // SAFETY: the arrays have `n` elements.
    unsafe {
        kernels::saxpy.launch(cx, config, n, a, &x, &mut y)?;
        kernels::double_each.launch(cx, config, n, &x, &mut z)
    }
}
