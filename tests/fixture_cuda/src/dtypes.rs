//! y <- x for each element type.

use super::{grid, kernels};
use jax_callable::cudarc::driver::PushKernelArg;
use jax_callable::prelude::*;

macro_rules! copies {
    ($($name:ident: $ty:ty,)*) => {$(
        /// y <- x
        #[jax_callable]
        fn $name(
            cx: &cuda::Context,
            x: cuda::Array<$ty, 1>,
            mut y: cuda::ArrayMut<$ty, 1>,
        ) -> Result<()> {
            let Some((n, config)) = grid(x.len() * size_of::<$ty>())? else {
                return Ok(());
            };
            let mut launch = cx.launch_builder(kernels::copy.function(cx)?);
            launch.arg(&n).arg(&x).arg(&mut y);
            // SAFETY: both arrays have `n` bytes.
            unsafe { launch.launch(config)? };
            Ok(())
        }
    )*};
}

copies! {
    copy_bool: Pred,
    copy_int8: i8,
    copy_int16: i16,
    copy_int32: i32,
    copy_int64: i64,
    copy_uint8: u8,
    copy_uint16: u16,
    copy_uint32: u32,
    copy_uint64: u64,
    copy_float16: f16,
    copy_bfloat16: bf16,
    copy_float32: f32,
    copy_float64: f64,
    copy_complex64: Complex<f32>,
    copy_complex128: Complex<f64>,
}
