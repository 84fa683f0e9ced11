//! Callables on NVIDIA GPUs: [`Context`], [`Array`], [`ArrayMut`], [`Scratch`], [`PerDevice`],
//! and [`module!`] for kernels.
//!
//! ```no_run
//! use jax_callable::cuda::LaunchConfig;
//! use jax_callable::prelude::*;
//!
//! cuda::module! {
//!     mod kernels = source(r#"
//!         extern "C" __global__ void saxpy(unsigned n, float a, const float* x, float* y) {
//!             unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
//!             if (i < n) y[i] += a * x[i];
//!         }
//!     "#);
//!     fn saxpy(n: u32, a: f32, x: *const f32, y: *mut f32);
//! }
//!
//! /// y <- a x + y, in place.
//! #[jax_callable(in_out = "y")]
//! fn saxpy(
//!     cx: &cuda::Context,
//!     a: f32,
//!     #[dims(n)] x: cuda::Array<f32, 1>,
//!     #[dims(n)] mut y: cuda::ArrayMut<f32, 1>,
//! ) -> Result<()> {
//!     let n = u32::try_from(x.len())?;
//!     if n == 0 {
//!         return Ok(());
//!     }
//!     // SAFETY: the kernel stays within the `n` elements that both arrays have.
//!     unsafe { kernels::saxpy.launch(cx, LaunchConfig::for_num_elems(n), n, a, &x, &mut y) }
//! }
//! # fn main() {}
//! ```
//!
//! The library needs no CUDA to be built, and none to be loaded: the driver is looked for
//! when the first call on a GPU is made.
//!
//! Work goes to the stream of the call, [`Context::stream`], and is waited for by nobody: a
//! body returns when all is queued. Kernels that fail while they run are reported by JAX at
//! some later point; with `JAX_CALLABLE_SYNC=1` in the environment every call waits for its
//! work, and the error names the target.
//!
//! The modules of a callable are loaded on a device before its first call there. With
//! `preload = CurrentDevice`, which is the default, that is done already when JAX traces a
//! program, if JAX has started CUDA and its default device is a GPU; with `AllDevices` then on
//! all GPUs of the process, with `None` not before the call. What fails there is not an error of
//! the trace: the call tries again, and its error tells.
//!
//! What NVRTC compiles is kept on disk for the next process, in `$JAX_CALLABLE_CACHE_DIR`, which
//! is `$XDG_CACHE_HOME/jax-callable` or `~/.cache/jax-callable` unless it is set; set to nothing,
//! it turns this off. Up to 256 MiB are kept, the most recently used. Removing the folder is safe
//! at any time. Where it cannot be written, because the disk is full or read-only, each process
//! compiles for itself, and says so once on standard error. Sources that `#include` other files are compiled anew in each process.
//!
//! `cudarc` is re-exported as [`jax_callable::cudarc`](crate::cudarc). Use that one: its
//! CUDA version is chosen by the features of this crate, and cannot be chosen twice.

mod array;
#[cfg(feature = "cublas")]
mod blas;
mod cache;
mod capture;
mod context;
#[cfg(feature = "cublas")]
mod cublas;
mod device;
mod driver;
#[cfg(feature = "cublas")]
mod gemm;
mod graph;
pub mod graphs;
mod kernel;
mod library;
mod module;
mod nvrtc;
mod per_device;
mod ready;
mod symbols;
mod upload;

pub use array::{Array, ArrayMut, Scratch};
#[cfg(feature = "cublas")]
pub use blas::{Blas, BlasElement};
pub use context::Context;
pub use cudarc::driver::LaunchConfig;
#[cfg(feature = "cublas")]
pub use gemm::{Gemm, Op};
pub(crate) use graph::{Slots, target_of};
pub use kernel::{KernelArg, KernelValue};
#[doc(hidden)]
pub use module::{Image, Kernel, Module};
pub(crate) use module::{load, preload};
pub use per_device::PerDevice;
pub(crate) use ready::Ready;

#[doc(inline)]
pub use crate::__cuda_module as module;

pub(crate) use device::{Device, MAX_DEVICES};
