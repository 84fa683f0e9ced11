//! Launches: typed, through cudarc, from PTX, refused.

use super::{Offsets, from_ptx, grid, kernels};
use jax_callable::cuda::LaunchConfig;
use jax_callable::cudarc::driver::PushKernelArg;
use jax_callable::prelude::*;

/// y <- -x, by a kernel from PTX.
#[jax_callable]
fn negate(cx: &cuda::Context, x: cuda::Array<f32, 1>, mut y: cuda::ArrayMut<f32, 1>) -> Result<()> {
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    // SAFETY: both arrays have `n` elements.
    unsafe { from_ptx::negate.launch(cx, config, n, &x, &mut y) }
}

/// y <- 2 x, through cudarc's own launch.
#[jax_callable]
fn double_by_builder(
    cx: &cuda::Context,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    let function = kernels::double_each.function(cx)?;
    let mut launch = cx.launch_builder(function);
    launch.arg(&n).arg(&x).arg(&mut y);
    // SAFETY: both arrays have `n` elements, and these are the kernel's parameters.
    unsafe { launch.launch(config)? };
    Ok(())
}

/// y <- x, by a copy of cudarc.
#[jax_callable]
fn copy_by_cudarc(
    cx: &cuda::Context,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    if !x.is_empty() {
        cx.stream().memcpy_dtod(&x, &mut y)?;
    }
    Ok(())
}

/// y <- a x + weight shift + small, all of it negated if `negate`: all kinds of scalars.
#[jax_callable]
#[allow(clippy::too_many_arguments)]
fn scalars(
    cx: &cuda::Context,
    a: f64,
    negate: bool,
    weights: &[f32],
    shift: i32,
    small: i16,
    x: cuda::Array<f64, 1>,
    mut y: cuda::ArrayMut<f64, 1>,
) -> Result<()> {
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    let weight = weights.iter().sum();
    let offsets = Offsets { weight, shift };
    // SAFETY: both arrays have `n` elements.
    unsafe { kernels::scalars.launch(cx, config, n, a, negate, offsets, small, &x, &mut y) }
}

/// y <- 2 x with as many threads in a block as asked for; the driver refuses too many.
#[jax_callable]
fn double_with_threads(
    cx: &cuda::Context,
    threads: u32,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let n = u32::try_from(x.len())?;
    let config = LaunchConfig {
        grid_dim: (n.div_ceil(threads), 1, 1),
        block_dim: (threads, 1, 1),
        shared_mem_bytes: 0,
    };
    // SAFETY: both arrays have `n` elements.
    unsafe { kernels::double_each.launch(cx, config, n, &x, &mut y) }
}

/// Launches a kernel that writes to address 8: the process's CUDA is of no use after it.
#[jax_callable(graph_mode = None)]
fn faults(cx: &cuda::Context, x: cuda::Array<f32, 1>, y: cuda::ArrayMut<f32, 1>) -> Result<()> {
    let _ = (x, y);
    let config = LaunchConfig {
        grid_dim: (1, 1, 1),
        block_dim: (1, 1, 1),
        shared_mem_bytes: 0,
    };
    // SAFETY: none: this is for a process of its own, which tests what becomes of it.
    unsafe { kernels::fault.launch(cx, config, 8) }
}
