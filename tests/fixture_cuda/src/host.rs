//! Copies between the host and the device.

use jax_callable::prelude::*;
use std::sync::{Arc, LazyLock};

static TABLE: LazyLock<Arc<[f32]>> = LazyLock::new(|| (0..1000).map(|i| i as f32).collect());

/// How many hold the table of `uploads`, beside the library.
#[jax_callable(has_side_effect, output_dims = ())]
fn table_holders(mut count: cpu::ArrayMut<u32, 0>) {
    count[0] = Arc::strong_count(&TABLE) as u32 - 1;
}

/// y <- a table of the library, z <- a times 0, 1, ..
#[jax_callable(output_dims(y = 1000, z = 7))]
fn uploads(
    cx: &cuda::Context,
    a: f32,
    mut y: cuda::ArrayMut<f32, 1>,
    mut z: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    cx.upload(Arc::clone(&TABLE), &mut y)?;
    let z_host: Vec<_> = (0..z.len()).map(|i| a * i as f32).collect();
    cx.upload(z_host, &mut z)
}

/// Uploads too few elements.
#[jax_callable(output_dims = 3)]
fn uploads_too_few(cx: &cuda::Context, mut y: cuda::ArrayMut<f32, 1>) -> Result<()> {
    cx.upload(vec![1.0], &mut y)
}

/// y <- x, by way of memory of the body that is gone when it returns.
#[jax_callable]
fn copies_from_the_body(
    cx: &cuda::Context,
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let _ = x;
    let host: Vec<_> = (0..y.len()).map(|i| i as f32).collect();
    cx.stream().memcpy_htod(&host, &mut y)?;
    Ok(())
}

/// Copies to memory of the body that is gone when it returns, and y <- x.
#[jax_callable]
fn copies_to_the_body(
    cx: &cuda::Context,
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let mut host = vec![0.0_f32; x.len()];
    cx.stream().memcpy_dtoh(&x, &mut host)?;
    cx.stream().memcpy_dtod(&x, &mut y)?;
    Ok(())
}
