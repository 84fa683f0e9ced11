//! Modules that cannot be loaded, and a callable that hides which it uses.
//!
//! A crate of their own: a callable that names no modules loads all of its crate's.

use jax_callable::cuda::LaunchConfig;
use jax_callable::prelude::*;

cuda::module! {
    mod bad_ptx = ptx(".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry f() { nonsense; }\n");
    fn f();
}

cuda::module! {
    mod bad_binary = binary(b"no binary at all");
    fn f();
}

cuda::module! {
    mod bad_source = source("extern \"C\" __global__ void f() { undeclared_name = 1; }");
    fn f();
}

cuda::module! {
    mod missing_kernel = source("extern \"C\" __global__ void f() {}");
    fn g();
}

cuda::module! {
    mod other_params = source("extern \"C\" __global__ void f(unsigned n, float* x) {}");
    fn f(n: u64, x: *mut f32);
}

cuda::module! {
    mod right = source("extern \"C\" __global__ void f(float* y) { *y = 1; }");
    fn f(y: *mut f32);
}

cuda::module! {
    mod late = source("extern \"C\" __global__ void f(float* y) { *y = 2; }");
    fn f(y: *mut f32);
}

const ONE_THREAD: LaunchConfig = LaunchConfig {
    grid_dim: (1, 1, 1),
    block_dim: (1, 1, 1),
    shared_mem_bytes: 0,
};

macro_rules! users {
    ($($name:ident: $module:ident::$kernel:ident,)*) => {$(
        #[jax_callable(modules = $module)]
        fn $name(
            cx: &cuda::Context,
            x: cuda::Array<f32, 1>,
            y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            let _ = (cx.device_ordinal(), x, y, $module::$kernel);
            Err(Error::internal("ran without its module"))
        }
    )*};
}

users! {
    use_bad_ptx: bad_ptx::f,
    use_bad_binary: bad_binary::f,
    use_bad_source: bad_source::f,
    use_missing_kernel: missing_kernel::g,
    use_other_params: other_params::f,
}

/// Uses a module that it does not name: loaded when it is needed, but not in a capture.
#[jax_callable(modules = right)]
fn uses_undeclared(
    cx: &cuda::Context,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let _ = x;
    // SAFETY: the kernels write one element; JAX does not call for none.
    unsafe {
        right::f.launch(cx, ONE_THREAD, &mut y)?;
        late::f.launch(cx, ONE_THREAD, &mut y)
    }
}

/// The same, never captured.
#[jax_callable(modules = right, graph_mode = None)]
fn uses_undeclared_uncaptured(
    cx: &cuda::Context,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let _ = x;
    // SAFETY: as above.
    unsafe { late::f.launch(cx, ONE_THREAD, &mut y) }
}
