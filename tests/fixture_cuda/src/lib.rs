//! The functions that the tests on a GPU call: each is as small as what it tests allows.

mod blas;
mod captured;
mod conditional;
mod dtypes;
mod graphs;
mod halves;
mod host;
mod kept;
mod launch;
mod meeting;
mod modes;
mod overrun;
mod preload;
mod race;
mod shapes;
mod state;
mod twins;

use jax_callable::cuda::{KernelValue, LaunchConfig};
use jax_callable::f8::F8E4M3FN;
use jax_callable::prelude::*;

jax_callable::link!(fixture_cuda_broken);

/// What the kernel `scalars` takes by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Offsets {
    weight: f32,
    shift: i32,
}

// SAFETY: the struct of the same name in the source has this layout.
unsafe impl KernelValue for Offsets {}

cuda::module! {
    mod kernels = source(include_str!("kernels.cu"));
    fn saxpy(n: u32, a: f32, x: *const f32, y: *mut f32);
    fn double_each(n: u32, x: *const f32, y: *mut f32);
    fn add_constant(n: u32, a: f32, y: *mut f32);
    fn sum(n: u32, x: *const f32, result: *mut f32);
    fn matmul(n: u32, k: u32, m: u32, a: *const f32, b: *const f32, c: *mut f32);
    fn scalars(
        n: u32, a: f64, negate: bool, offsets: Offsets, shift: i16, x: *const f64, y: *mut f64,
    );
    fn cross(n: u32, a: *const [f32; 3], b: *const [f32; 3], c: *mut [f32; 3]);
    fn copy(n: u32, x: *const u8, y: *mut u8);
    fn replace_nan(n: u32, other: F8E4M3FN, x: *const F8E4M3FN, y: *mut F8E4M3FN);
    fn fault(address: u64);
}

cuda::module! {
    mod from_ptx = ptx(include_str!("negate.ptx"));
    fn negate(n: u32, x: *const f32, y: *mut f32);
}

/// One thread for each element; none for no elements, which a launch may not have.
fn grid(len: usize) -> Result<Option<(u32, LaunchConfig)>> {
    let n = u32::try_from(len)?;
    Ok((n > 0).then(|| (n, LaunchConfig::for_num_elems(n))))
}
