//! Each way to load a module early, with a module of its own for each.

use super::grid;
use jax_callable::prelude::*;

macro_rules! doubles {
    ($($name:ident: $preload:ident, $module:ident, $text:literal;)*) => {$(
        cuda::module! {
            mod $module = source($text);
            fn twice(n: u32, x: *const f32, y: *mut f32);
        }

        /// y <- 2 x
        #[jax_callable(modules = $module, preload = $preload)]
        fn $name(
            cx: &cuda::Context,
            x: cuda::Array<f32, 1>,
            mut y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            let Some((n, config)) = grid(x.len())? else {
                return Ok(());
            };
            // SAFETY: both arrays have `n` elements.
            unsafe { $module::twice.launch(cx, config, n, &x, &mut y) }
        }
    )*};
}

doubles! {
    preload_here: CurrentDevice, for_here,
        "extern \"C\" __global__ void twice(unsigned n, const float* x, float* y) {
            for (unsigned i = 0; i < n; ++i) y[i] = 2 * x[i];
        }";
    preload_everywhere: AllDevices, for_everywhere,
        "extern \"C\" __global__ void twice(unsigned n, const float* x, float* y) {
            for (unsigned i = 0; i < n; ++i) y[i] = x[i] * 2;
        }";
    preload_nowhere: None, for_nowhere,
        "extern \"C\" __global__ void twice(unsigned n, const float* x, float* y) {
            for (unsigned i = 0; i < n; ++i) y[i] = x[i] + x[i];
        }";
}
