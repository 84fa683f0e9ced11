//! What a launch costs: the driver's own, cudarc's, and that of `cuda::module!`.

use super::kernels;
use jax_callable::cuda::LaunchConfig;
use jax_callable::cudarc::driver::{PushKernelArg, sys};
use jax_callable::prelude::*;
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Few enough that the driver's queue never fills: then a launch would wait for the GPU.
const LAUNCHES: u32 = 200;
const ROUNDS: usize = 100;

const CONFIG: LaunchConfig = LaunchConfig {
    grid_dim: (1, 1, 1),
    block_dim: (32, 1, 1),
    shared_mem_bytes: 0,
};

/// For each round nanoseconds per launch: the driver's, cudarc's, ours.
static TIMES: Mutex<Vec<[f32; 3]>> = Mutex::new(Vec::new());

/// What the last run of `time_launches` measured: nanoseconds per launch by `cuLaunchKernel`, by
/// cudarc's `launch_builder`, and by `launch` of `cuda::module!`, in rounds.
#[jax_callable(has_side_effect, output_dims = (100, 3))]
fn launch_times(mut times: cpu::ArrayMut<f32, 2>) {
    let measured = TIMES.lock().unwrap_or_else(PoisonError::into_inner);
    times.fill(f32::NAN);
    for (times, measured) in times.chunks_exact_mut(3).zip(measured.iter()) {
        times.copy_from_slice(measured);
    }
}

/// y <- s x, many times, launched in three ways, which take turns.
#[jax_callable(graph_mode = None, modules = kernels)]
fn time_launches(
    cx: &cuda::Context,
    s: f32,
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let n = u32::try_from(x.len())?.min(CONFIG.block_dim.0);
    let function = kernels::scale.function(cx)?;
    let raw_function = function.cu_function();
    let mut times = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        let mut nanoseconds = [0.0; 3];
        for turn in 0..3 {
            let way = (round + turn) % 3;
            cx.stream().synchronize()?;
            let start = Instant::now();
            for _ in 0..LAUNCHES {
                // SAFETY: both arrays have `n` elements or more, and these are the kernel's
                // parameters.
                unsafe {
                    match way {
                        0 => launch_raw(cx, raw_function, n, s, &x, &mut y)?,
                        1 => {
                            let mut launch = cx.launch_builder(function);
                            launch.arg(&n).arg(&s).arg(&x).arg(&mut y);
                            launch.launch(CONFIG)?;
                        }
                        _ => kernels::scale.launch(cx, CONFIG, n, s, &x, &mut y)?,
                    }
                }
            }
            nanoseconds[way] = start.elapsed().as_nanos() as f32 / LAUNCHES as f32;
        }
        times.push(nanoseconds);
    }
    *TIMES.lock().unwrap_or_else(PoisonError::into_inner) = times;
    Ok(())
}

/// # Safety
/// As for any launch: the function is `kernels::scale`, and both arrays have `n` elements.
unsafe fn launch_raw(
    cx: &cuda::Context,
    function: sys::CUfunction,
    mut n: u32,
    mut s: f32,
    x: &cuda::Array<f32, 1>,
    y: &mut cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let (mut x, mut y) = (x.device_ptr(), y.device_ptr());
    let mut params = [
        (&raw mut n).cast(),
        (&raw mut s).cast(),
        (&raw mut x).cast(),
        (&raw mut y).cast(),
    ];
    let (grid, block) = (CONFIG.grid_dim, CONFIG.block_dim);
    // SAFETY: the parameters are of the kernel's types; all else is the caller's promise.
    unsafe {
        sys::cuLaunchKernel(
            function,
            grid.0,
            grid.1,
            grid.2,
            block.0,
            block.1,
            block.2,
            CONFIG.shared_mem_bytes,
            cx.stream().cu_stream(),
            params.as_mut_ptr(),
            ptr::null_mut(),
        )
    }
    .result()?;
    Ok(())
}
