//! Arguments of other types than the kernel's parameters.
use jax_callable::cuda::LaunchConfig;
use jax_callable::prelude::*;

cuda::module! {
    mod kernels = ptx("");
    fn saxpy(n: u32, x: *const f32, y: *mut f32);
}

fn f(cx: &cuda::Context, x: &cuda::Array<f64, 1>, y: &cuda::Array<f32, 1>) {
    let config = LaunchConfig::for_num_elems(1);
    // SAFETY: never compiled.
    let _ = unsafe { kernels::saxpy.launch(cx, config, 1.0_f32, x, y) };
}

fn main() {}
