//! A graph with two nodes that could be one another, one of which holds no address of an array.

use super::{grid, kernels};
use jax_callable::cudarc::driver::{CudaSlice, CudaStream};
use jax_callable::prelude::*;
use std::sync::{Arc, Mutex};

/// A stream of a call site's own, and a number that is set on it.
struct Twin {
    stream: Arc<CudaStream>,
    number: Mutex<CudaSlice<f32>>,
}

impl Twin {
    fn new(cx: &cuda::Context) -> Result<Twin> {
        let stream = cx.device().new_stream()?;
        let number = stream.alloc_zeros(1)?;
        stream.synchronize()?;
        let number = Mutex::new(number);
        Ok(Twin { stream, number })
    }

    /// Sets the number to 0, and `y`, side by side.
    fn set(&self, cx: &cuda::Context, y: &mut cuda::ArrayMut<'_, f32, 1>) -> Result<()> {
        let number = &mut *self.number.lock().unwrap();
        self.stream.join(cx.stream())?;
        let both = self.stream.memset_zeros(number);
        let both = both.and_then(|()| cx.stream().memset_zeros(y));
        if let Err(error) = both.and_then(|()| cx.stream().join(&self.stream)) {
            // What is not joined must not outlive the call.
            let _ = self.stream.synchronize();
            return Err(error.into());
        }
        Ok(())
    }
}

/// y <- 3 x.
#[jax_callable(graph_mode = Warp, state = Twin::new(cx))]
fn triple_by_twins(
    cx: &cuda::Context,
    twin: &cuda::PerDevice<Twin>,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    twin.set(cx, &mut y)?;
    // SAFETY: both arrays have `n` elements.
    unsafe { kernels::saxpy.launch(cx, config, n, 3.0, &x, &mut y) }
}
