//! Scratch in kernels, and state on each device.

use super::{grid, kernels};
use jax_callable::cudarc::driver::CudaSlice;
use jax_callable::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// y <- 4 x by way of w, of which nothing is left but nonsense.
fn quadruple_by(
    cx: &cuda::Context,
    x: &cuda::Array<f32, 1>,
    w: &mut cuda::Scratch<f32, 1>,
    y: &mut cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    // SAFETY: the arrays have `n` elements.
    unsafe {
        kernels::double_each.launch(cx, config, n, x, &mut *w)?;
        kernels::double_each.launch(cx, config, n, &*w, y)?;
        kernels::saxpy.launch(cx, config, n, f32::INFINITY, x, w)
    }
}

/// out <- 4 x, on the CPU with a workspace of another size and type.
#[jax_callable(name = "quadruple")]
fn quadruple_cpu(
    #[dims(n)] x: cpu::Array<f32, 1>,
    #[dims(2 * n, 3)] mut w: cpu::Scratch<f64, 2>,
    #[dims(n)] mut y: cpu::ArrayMut<f32, 1>,
) {
    for (i, x) in x.iter().enumerate() {
        w[[i, 2]] = 2.0 * f64::from(*x);
        y[i] = (2.0 * w[[i, 2]]) as f32;
    }
    w.fill(f64::NAN);
}

/// out <- 4 x, on a GPU.
#[jax_callable(name = "quadruple")]
fn quadruple_cuda(
    cx: &cuda::Context,
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] mut w: cuda::Scratch<f32, 1>,
    #[dims(n)] mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    quadruple_by(cx, &x, &mut w, &mut y)
}

/// out <- 4 x, never captured.
#[jax_callable(graph_mode = None)]
fn quadruple_uncaptured(
    cx: &cuda::Context,
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] mut w: cuda::Scratch<f32, 1>,
    #[dims(n)] mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    quadruple_by(cx, &x, &mut w, &mut y)
}

/// y <- 5 x + y, in place, by cudarc's copies and a workspace of a size that the call chooses.
#[jax_callable(in_out = y)]
fn add_five_times(
    cx: &cuda::Context,
    room: u32,
    #[dims(room, n)] mut w: cuda::Scratch<f32, 2>,
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    if room == 0 {
        return Err(Error::invalid_argument("expected room for one row"));
    }
    cx.stream().memset_zeros(&mut w)?;
    // SAFETY: the arrays have at least `n` elements.
    unsafe {
        kernels::saxpy.launch(cx, config, n, 5.0, &x, &mut w)?;
        kernels::saxpy.launch(cx, config, n, 1.0, &w, &mut y)?;
        kernels::saxpy.launch(cx, config, n, f32::NAN, &x, &mut w)
    }
}

static BUILT: AtomicU32 = AtomicU32::new(0);
static DROPPED: AtomicU32 = AtomicU32::new(0);

/// How many weights were put on devices, and how many were taken off.
#[jax_callable(has_side_effect, output_dims = 2)]
fn weight_counts(mut counts: cpu::ArrayMut<u32, 1>) {
    counts[0] = BUILT.load(Ordering::SeqCst);
    counts[1] = DROPPED.load(Ordering::SeqCst);
}

/// The numbers 0, 1, .. in the memory of a device.
struct Weights {
    values: CudaSlice<f32>,
    ordinal: usize,
}

impl Weights {
    fn new(cx: &cuda::Context, count: u32) -> Result<Weights> {
        if count == 0 {
            return Err(Error::out_of_range("no weights were asked for"));
        }
        assert!(!cx.is_capturing()?, "built in a capture");
        let values: Vec<f32> = (0..count).map(|i| i as f32).collect();
        // What is kept must not hang on XLA's stream.
        let stream = cx.device().new_stream()?;
        let values = stream.clone_htod(&values)?;
        stream.synchronize()?;
        BUILT.fetch_add(1, Ordering::SeqCst);
        Ok(Weights {
            values,
            ordinal: cx.device_ordinal(),
        })
    }
}

impl Drop for Weights {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::SeqCst);
    }
}

/// y <- y + scale (0, 1, ..), in place.
fn add_weights_by(
    cx: &cuda::Context,
    scale: f32,
    weights: &Weights,
    y: &mut cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    assert_eq!(weights.ordinal, cx.device_ordinal());
    let Some((n, config)) = grid(y.len())? else {
        return Ok(());
    };
    let count = jax_callable::cudarc::driver::DeviceSlice::len(&weights.values);
    if count < y.len() {
        return Err(Error::invalid_argument(format!("{count} weights for {n}")));
    }
    // SAFETY: both have at least `n` elements.
    unsafe { kernels::saxpy.launch(cx, config, n, scale, &weights.values, y) }
}

/// y <- y + scale (0, 1, ..), in place.
#[jax_callable(state = Weights::new(cx, count), in_out = y)]
fn add_weights(
    cx: &cuda::Context,
    count: u32,
    scale: f32,
    weights: &cuda::PerDevice<Weights>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let _ = count;
    add_weights_by(cx, scale, weights, &mut y)
}

/// y <- y + scale (0, 1, ..), in place, never captured.
#[jax_callable(state = Weights::new(cx, count), in_out = y, graph_mode = None)]
fn add_weights_uncaptured(
    cx: &cuda::Context,
    count: u32,
    scale: f32,
    weights: &cuda::PerDevice<Weights>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let _ = count;
    add_weights_by(cx, scale, weights, &mut y)
}

/// y <- y + the offset of the call site, in place: state of the host for a body on a GPU.
#[jax_callable(state = Vec::from([offset; 4]), in_out = y)]
fn add_offset(
    cx: &cuda::Context,
    offset: f32,
    offsets: &State<Vec<f32>>,
    #[dims(4)] mut w: cuda::Scratch<f32, 1>,
    #[dims(4)] mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    assert!(offsets.iter().all(|&each| each == offset));
    let Some((n, config)) = grid(y.len())? else {
        return Ok(());
    };
    cx.stream().memset_zeros(&mut w)?;
    for _ in 0..offsets.len() {
        // SAFETY: both arrays have `n` elements.
        unsafe {
            kernels::add_constant.launch(cx, config, n, offsets[0] / 4.0, &mut w)?;
        }
    }
    // SAFETY: as above.
    unsafe { kernels::saxpy.launch(cx, config, n, 1.0, &w, &mut y) }
}
