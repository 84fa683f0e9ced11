//! One computation in several graph modes, on two platforms, with a count of its runs.

use super::{grid, kernels};
use jax_callable::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

static JAX: AtomicU32 = AtomicU32::new(0);
static NONE: AtomicU32 = AtomicU32::new(0);

/// How often the bodies of `saxpy` and `saxpy_uncaptured` ran on a GPU.
#[jax_callable(has_side_effect, output_dims = 2)]
fn body_runs(mut runs: cpu::ArrayMut<u32, 1>) {
    runs[0] = JAX.load(Ordering::SeqCst);
    runs[1] = NONE.load(Ordering::SeqCst);
}

/// y <- x, on the CPU only. Without a side effect: where that fails, JAX remembers it for good.
#[jax_callable]
fn on_the_cpu(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
    y.copy_from_slice(&x);
}

/// y <- a x + y, in place, on a GPU and on the CPU.
#[jax_callable(name = "saxpy", in_out = y)]
fn saxpy_cpu(a: f32, #[dims(n)] x: cpu::Array<f32, 1>, #[dims(n)] mut y: cpu::ArrayMut<f32, 1>) {
    for (y, x) in y.iter_mut().zip(x.iter()) {
        *y += a * x;
    }
}

#[jax_callable(name = "saxpy", in_out = y)]
fn saxpy_cuda(
    cx: &cuda::Context,
    a: f32,
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    JAX.fetch_add(1, Ordering::SeqCst);
    launch(cx, a, x, y)
}

/// y <- a x + y, in place, never captured.
#[jax_callable(in_out = y, graph_mode = None)]
fn saxpy_uncaptured(
    cx: &cuda::Context,
    a: f32,
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    NONE.fetch_add(1, Ordering::SeqCst);
    launch(cx, a, x, y)
}

macro_rules! own_graphs {
    ($($name:ident $mode:ident,)*) => {$(
        /// y <- a x + y, in place, by a graph of our own.
        #[jax_callable(in_out = y, graph_mode = $mode)]
        fn $name(
            cx: &cuda::Context,
            a: f32,
            #[dims(n)] x: cuda::Array<f32, 1>,
            #[dims(n)] y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            launch(cx, a, x, y)
        }
    )*};
}

own_graphs! {
    saxpy_warp Warp,
    saxpy_staged WarpStaged,
    saxpy_staged_ex WarpStagedEx,
}

fn launch(
    cx: &cuda::Context,
    a: f32,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    // SAFETY: both arrays have `n` elements.
    unsafe { kernels::saxpy.launch(cx, config, n, a, &x, &mut y) }
}

/// Waits for its work, which a capture cannot.
#[jax_callable]
fn waits(cx: &cuda::Context, x: cuda::Array<f32, 1>, mut y: cuda::ArrayMut<f32, 1>) -> Result<()> {
    cx.stream().memcpy_dtod(&x, &mut y)?;
    cx.stream().synchronize()?;
    Ok(())
}

/// Fails on any GPU, naming the one that it runs on.
#[jax_callable(graph_mode = None)]
fn name_the_device(
    cx: &cuda::Context,
    x: cuda::Array<f32, 1>,
    y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let _ = (x, y);
    let ordinal = cx.device_ordinal();
    Err(Error::out_of_range(format!(
        "device {ordinal}, not capturing: {}",
        !cx.is_capturing()?
    )))
}

/// Panics.
#[jax_callable(graph_mode = None)]
fn panics(x: cuda::Array<f32, 1>, y: cuda::ArrayMut<f32, 1>) {
    let _ = y;
    panic!("with {} elements", x.len());
}

/// Keeps two graphs at most.
#[jax_callable(graph_mode = Warp, graph_cache_max = 2)]
fn keeps_two(
    cx: &cuda::Context,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    Ok(cx.stream().memcpy_dtod(&x, &mut y)?)
}

/// Keeps all of its graphs.
#[jax_callable(graph_mode = Warp, graph_cache_max = unlimited)]
fn keeps_all(
    cx: &cuda::Context,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    Ok(cx.stream().memcpy_dtod(&x, &mut y)?)
}
