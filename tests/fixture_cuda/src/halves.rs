//! In-outs and outputs of each element type, packed ones too.

use super::{grid, kernels};
use jax_callable::cudarc::driver::{DevicePtr, DevicePtrMut, PushKernelArg};
use jax_callable::prelude::*;

macro_rules! halves {
    ($($name:ident: $ty:ty,)*) => {$(
        /// The first half of y <- that of x, the rest of it stays; z <- x.
        #[jax_callable(in_out = y)]
        fn $name(
            cx: &cuda::Context,
            #[dims(n)] x: cuda::Array<$ty, 1>,
            #[dims(n)] mut y: cuda::ArrayMut<$ty, 1>,
            #[dims(n)] mut z: cuda::ArrayMut<$ty, 1>,
        ) -> Result<()> {
            copy(cx, x.len() / 2, &x, &mut y)?;
            copy(cx, x.len(), &x, &mut z)
        }
    )*};
}

halves! {
    halves_bool: Pred,
    halves_int8: i8,
    halves_int16: i16,
    halves_int32: i32,
    halves_int64: i64,
    halves_uint8: u8,
    halves_uint16: u16,
    halves_uint32: u32,
    halves_uint64: u64,
    halves_float16: f16,
    halves_bfloat16: bf16,
    halves_float32: f32,
    halves_float64: f64,
    halves_complex64: Complex<f32>,
    halves_complex128: Complex<f64>,
    halves_bool_4: [Pred; 4],
    halves_int8_16: [i8; 16],
    halves_int32_2x2: [[i32; 2]; 2],
    halves_float16_4: [f16; 4],
    halves_float32_1: [f32; 1],
    halves_float32_3x2: [[f32; 2]; 3],
    halves_float64_3: [f64; 3],
    halves_complex64_2: [Complex<f32>; 2],
}

/// Queues a copy of the first elements, of any type, by a kernel for bytes.
fn copy<T, Y: DevicePtrMut<T>>(
    cx: &cuda::Context,
    elements: usize,
    from: &impl DevicePtr<T>,
    to: &mut Y,
) -> Result<()> {
    assert!(elements <= from.len().min(to.len()));
    let Some((n, config)) = grid(elements * size_of::<T>())? else {
        return Ok(());
    };
    let (from, _from) = from.device_ptr(cx.stream());
    let (to, _to) = to.device_ptr_mut(cx.stream());
    let mut launch = cx.launch_builder(kernels::copy.function(cx)?);
    launch.arg(&n).arg(&from).arg(&to);
    // SAFETY: both arrays have `n` bytes.
    unsafe { launch.launch(config)? };
    Ok(())
}
