//! y <- x for each element type.

use super::{grid, kernels};
use jax_callable::cudarc::driver::PushKernelArg;
use jax_callable::f8;
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
    copy_float8_e5m2: f8::F8E5M2,
    copy_float8_e4m3fn: f8::F8E4M3FN,
    copy_float8_e4m3b11fnuz: f8::F8E4M3B11FNUZ,
    copy_float8_e5m2fnuz: f8::F8E5M2FNUZ,
    copy_float8_e4m3fnuz: f8::F8E4M3FNUZ,
    copy_float8_e4m3: f8::F8E4M3,
    copy_float8_e3m4: f8::F8E3M4,
    copy_float8_e8m0fnu: f8::F8E8M0FNU,
    copy_packed_float8: [[f8::F8E4M3FN; 2]; 3],
}

/// y <- x or, where x is NaN, `other`: an f8 as an element and as a value that a kernel takes.
#[jax_callable]
fn replace_nan(
    cx: &cuda::Context,
    other: f32,
    x: cuda::Array<f8::F8E4M3FN, 1>,
    mut y: cuda::ArrayMut<f8::F8E4M3FN, 1>,
) -> Result<()> {
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    let other = f8::F8E4M3FN::from_f32(other);
    // SAFETY: both arrays have `n` elements.
    unsafe { kernels::replace_nan.launch(cx, config, n, other, &x, &mut y) }
}
