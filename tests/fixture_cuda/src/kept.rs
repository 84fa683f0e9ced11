//! Functions that keep the stream of their call, which they must not.

use jax_callable::cudarc::driver::{CudaSlice, CudaStream};
use jax_callable::prelude::*;
use std::sync::{Arc, Mutex};

static KEPT: Mutex<Vec<Arc<CudaStream>>> = Mutex::new(Vec::new());

fn copy_and_keep(
    cx: &cuda::Context,
    keeps: bool,
    x: cuda::Array<'_, f32, 1>,
    mut y: cuda::ArrayMut<'_, f32, 1>,
) -> Result<()> {
    if keeps {
        KEPT.lock().unwrap().push(Arc::clone(cx.stream()));
    }
    Ok(cx.stream().memcpy_dtod(&x, &mut y)?)
}

macro_rules! keep {
    ($($mode:ident $name:ident)*) => {$(
        /// y <- x, and keeps the stream if it is told to.
        #[jax_callable(graph_mode = $mode)]
        fn $name(
            cx: &cuda::Context,
            keeps: bool,
            x: cuda::Array<f32, 1>,
            y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            copy_and_keep(cx, keeps, x, y)
        }
    )*};
}

keep! {
    None keep_none
    Jax keep_jax
    Warp keep_warp
    WarpStaged keep_staged
    WarpStagedEx keep_staged_ex
}

/// Memory that was allocated on the stream of the call.
struct OfTheCall(CudaSlice<f32>);

/// y <- x, with a state that hangs on XLA's stream.
#[jax_callable(state = OfTheCall(cx.stream().alloc_zeros(1)?))]
fn keep_state(
    cx: &cuda::Context,
    memory: &cuda::PerDevice<OfTheCall>,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let _ = &memory.0;
    Ok(cx.stream().memcpy_dtod(&x, &mut y)?)
}
