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

struct Plan(usize);

impl Plan {
    fn new(cx: &cuda::Context, k: usize) -> std::result::Result<Plan, std::num::ParseIntError> {
        Ok(Plan(cx.device_ordinal() + k))
    }
}

type Output<'a> = cuda::ArrayMut<'a, f32, 1>;
type Shared<'a> = &'a cuda::PerDevice<Plan>;
type Cx = cuda::Context;

#[jax_callable(state = Plan::new(cx, usize::from(k)), output_dims = 3)]
fn per_device(cx: &cuda::Context, k: u8, plan: &cuda::PerDevice<Plan>, y: cuda::ArrayMut<f32, 1>) {
    let _ = (cx, k, plan.0, y);
}

#[jax_callable(state = Plan::new(cx, 3), output_dims = 3)]
fn per_device_by_alias(cx: &Cx, plan: Shared, y: Output) {
    let _ = (cx, plan.0, y);
}

// The context is there for those that use it.
#[jax_callable(state = Vec::from([k]), output_dims = 3)]
fn without_context(k: u8, y: cuda::ArrayMut<f32, 1>, list: &cuda::PerDevice<Vec<u8>>) {
    let _ = (k, list.len(), y);
}

#[jax_callable(state = Vec::from([k]), output_dims = 3)]
fn for_all_devices(cx: &Cx, k: u8, list: &State<Vec<u8>>, y: cuda::ArrayMut<f32, 1>) {
    let _ = (cx, k, list.len(), y);
}

fn main() {}
