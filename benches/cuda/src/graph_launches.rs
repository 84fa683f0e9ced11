//! What the launch of a graph costs by itself: `cuGraphLaunch`, and nothing around it.

use super::kernels;
use jax_callable::cuda::LaunchConfig;
use jax_callable::cudarc::driver::sys::{self, CUstream_flags, CUstreamCaptureMode};
use jax_callable::prelude::*;
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

const LAUNCHES: usize = 400;

/// Nanoseconds of each launch.
static TIMES: Mutex<Vec<f32>> = Mutex::new(Vec::new());

/// What the last run of `time_graph_launches` measured: nanoseconds of each launch.
#[jax_callable(has_side_effect, output_dims = 400)]
fn graph_launch_times(mut times: cpu::ArrayMut<f32, 1>) {
    let measured = TIMES.lock().unwrap_or_else(PoisonError::into_inner);
    times.fill(f32::NAN);
    for (time, measured) in times.iter_mut().zip(measured.iter()) {
        *time = *measured;
    }
}

/// y <- s x, by a graph in which that is done `count` times: launched on an idle stream.
#[jax_callable(graph_mode = None, modules = kernels)]
fn time_graph_launches(
    cx: &cuda::Context,
    count: u32,
    s: f32,
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let n = u32::try_from(x.len())?;
    let (grid, block) = {
        let config = LaunchConfig::for_num_elems(n);
        (config.grid_dim, config.block_dim)
    };
    let function = kernels::scale.function(cx)?.cu_function();
    let (mut n, mut s) = (n, s);
    let (mut from, mut to) = (x.device_ptr(), y.device_ptr());
    let mut params = [
        (&raw mut n).cast(),
        (&raw mut s).cast(),
        (&raw mut from).cast(),
        (&raw mut to).cast(),
    ];
    let mut times = Vec::with_capacity(LAUNCHES);
    let (mut stream, mut graph, mut executable) =
        (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: the handles are made, used and destroyed in order; both arrays have `n` elements,
    // and stay until the stream has done the work, which is waited for.
    unsafe {
        sys::cuStreamCreate(&mut stream, CUstream_flags::CU_STREAM_NON_BLOCKING as u32).result()?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        sys::cuStreamBeginCapture_v2(stream, mode).result()?;
        for _ in 0..count {
            sys::cuLaunchKernel(
                function,
                grid.0,
                grid.1,
                grid.2,
                block.0,
                block.1,
                block.2,
                0,
                stream,
                params.as_mut_ptr(),
                ptr::null_mut(),
            )
            .result()?;
        }
        sys::cuStreamEndCapture(stream, &mut graph).result()?;
        sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0).result()?;
        for _ in 0..LAUNCHES {
            cx.stream().synchronize()?;
            let start = Instant::now();
            sys::cuGraphLaunch(executable, cx.stream().cu_stream()).result()?;
            times.push(start.elapsed().as_nanos() as f32);
        }
        cx.stream().synchronize()?;
        sys::cuGraphExecDestroy(executable).result()?;
        sys::cuGraphDestroy(graph).result()?;
        sys::cuStreamDestroy_v2(stream).result()?;
    }
    *TIMES.lock().unwrap_or_else(PoisonError::into_inner) = times;
    Ok(())
}
