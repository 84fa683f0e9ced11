//! Callables on a GPU: contexts, arrays under other names, typed kernels.
#![deny(warnings)]
use jax_callable::cuda::LaunchConfig;
use jax_callable::cudarc::driver::PushKernelArg;
use jax_callable::prelude::*;

cuda::module! {
    /// All kinds of parameters.
    mod kernels = binary(b"", );
    /// With arrays.
    fn arrays(n: u32, x: *const f32, y: *mut [f32; 3],);
    fn none();
}

type Vector<'a> = cuda::Array<'a, f32, 1>;

#[jax_callable(graph_mode = WarpStaged, stage_in = x, stage_out = y, graph_cache_max = 3)]
fn typed(
    cx: &cuda::Context,
    #[dims(n)] x: Vector<'_>,
    #[dims(n)] mut y: cuda::ArrayMut<[f32; 3], 1>,
) -> Result<()> {
    let config = LaunchConfig::for_num_elems(1);
    // SAFETY: never run.
    unsafe {
        kernels::arrays.launch(cx, config, 16, &x, &mut y)?;
        kernels::none.launch(cx, config)
    }
}

#[jax_callable(in_out = y, modules = kernels)]
fn untyped(cx: &cuda::Context, x: Vector, a: f32, mut y: cuda::ArrayMut<f32, 1>) -> Result<()> {
    let mut launch = cx.launch_builder(kernels::none.function(cx)?);
    launch.arg(&a).arg(&x).arg(&mut y);
    cx.stream().memcpy_dtod(&x, &mut y)?;
    Ok(())
}

fn main() {}
