//! The Rust side of the benchmarks on a GPU.

mod graph_launches;
mod launches;
mod scaling;

use jax_callable::prelude::*;

cuda::module! {
    mod kernels = source(include_str!("kernels.cu"));
    fn scale(n: u32, s: f32, x: *const f32, y: *mut f32);
    fn scale_pairs(n: u32, s: f32, x: *const [f32; 2], y: *mut [f32; 2]);
    fn scale_in_place(n: u32, s: f32, x: *mut f32);
    fn scale_pairs_in_place(n: u32, s: f32, x: *mut [f32; 2]);
}
