//! What a memory checker must see.

use super::kernels;
use jax_callable::cuda::LaunchConfig;
use jax_callable::prelude::*;

/// Writes one element behind the end of its output, where there may be anything. Only for a process
/// of its own, under a memory checker.
#[jax_callable(graph_mode = None)]
fn writes_past_its_end(
    cx: &cuda::Context,
    x: cuda::Array<f32, 1>,
    y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let _ = x;
    let config = LaunchConfig {
        grid_dim: (1, 1, 1),
        block_dim: (1, 1, 1),
        shared_mem_bytes: 0,
    };
    let end = y.device_ptr() + size_of::<f32>() as u64 * y.len() as u64;
    // SAFETY: none: this is for a process of its own, to see that it is found out.
    unsafe { kernels::fault.launch(cx, config, end) }
}
