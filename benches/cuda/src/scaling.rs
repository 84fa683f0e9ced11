//! Four small kernels, many times over, in each graph mode: the work of which NVIDIA Warp's own
//! benchmark of its graph modes consists.

use super::kernels;
use jax_callable::cuda::LaunchConfig;
use jax_callable::prelude::*;

macro_rules! scaling {
    ($($name:ident: $mode:ident,)*) => {$(
        /// e <- s a, f <- s b; c <- s c and d <- s d, in place; all of it `reps` times.
        #[jax_callable(in_out = (c, d), graph_mode = $mode)]
        #[allow(clippy::too_many_arguments)]
        fn $name(
            cx: &cuda::Context,
            s: f32,
            reps: i64,
            #[dims(n)] a: cuda::Array<f32, 1>,
            #[dims(m)] b: cuda::Array<[f32; 2], 1>,
            #[dims(n)] mut c: cuda::ArrayMut<f32, 1>,
            #[dims(m)] mut d: cuda::ArrayMut<[f32; 2], 1>,
            #[dims(n)] mut e: cuda::ArrayMut<f32, 1>,
            #[dims(m)] mut f: cuda::ArrayMut<[f32; 2], 1>,
        ) -> Result<()> {
            let n = u32::try_from(a.len())?;
            let m = u32::try_from(b.len())?;
            for _ in 0..reps {
                // SAFETY: the arrays have `n` and `m` elements.
                unsafe {
                    kernels::scale.launch(cx, grid(n), n, s, &a, &mut e)?;
                    kernels::scale_pairs.launch(cx, grid(m), m, s, &b, &mut f)?;
                    kernels::scale_in_place.launch(cx, grid(n), n, s, &mut c)?;
                    kernels::scale_pairs_in_place.launch(cx, grid(m), m, s, &mut d)?;
                }
            }
            Ok(())
        }
    )*};
}

scaling! {
    scale_none: None,
    scale_jax: Jax,
    scale_warp: Warp,
    scale_warp_staged: WarpStaged,
    scale_warp_staged_ex: WarpStagedEx,
}

/// As Warp launches: 256 threads in a block.
fn grid(n: u32) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (n.div_ceil(256), 1, 1),
        block_dim: (256, 1, 1),
        shared_mem_bytes: 0,
    }
}
