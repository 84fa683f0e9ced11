//! Matrix products by cuBLAS, on the stream of a call and in captures.

use super::array::{Array, ArrayMut};
use super::context::Context;
use super::cublas::{Cublas, Handle};
use super::driver::failed;
use super::gemm::{Gemm, plan};
use crate::element::Element;
use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUstreamCaptureMode};
use cudarc::driver::{DevicePtrMut, SyncOnDrop};
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// Matrix products by cuBLAS in one call: see [`Context::blas`].
pub struct Blas<'a> {
    context: &'a Context,
    cublas: &'static Cublas,
    handle: Handle,
    _workspace: SyncOnDrop<'a>,
}

/// An element that cuBLAS can multiply.
pub trait BlasElement: Element + sealed::Sealed {
    /// What `alpha` and `beta` are, and what sums are made in.
    type Scale: Copy;
}

mod sealed {
    use std::ffi::c_int;

    pub trait Sealed {
        /// `cudaDataType_t`
        const TYPE: c_int;
        /// `cublasComputeType_t`
        const COMPUTE: c_int;
    }
}

const COMPUTE_32F: c_int = 68;
const COMPUTE_64F: c_int = 70;

macro_rules! elements {
    ($($ty:ty: $scale:ty, $dtype:expr, $compute:expr;)*) => {$(
        impl sealed::Sealed for $ty {
            const TYPE: c_int = $dtype;
            const COMPUTE: c_int = $compute;
        }
        impl BlasElement for $ty {
            type Scale = $scale;
        }
    )*};
}

elements! {
    f32: f32, 0, COMPUTE_32F;
    f64: f64, 1, COMPUTE_64F;
}
#[cfg(feature = "half")]
elements! {
    half::f16: f32, 2, COMPUTE_32F;
    half::bf16: f32, 14, COMPUTE_32F;
}
#[cfg(feature = "num-complex")]
elements! {
    num_complex::Complex<f32>: num_complex::Complex<f32>, 4, COMPUTE_32F;
    num_complex::Complex<f64>: num_complex::Complex<f64>, 5, COMPUTE_64F;
}

/// Handles of one device that no call uses now. Making one takes milliseconds, so they are kept:
/// as many as calls have used at once.
#[derive(Debug, Default)]
pub(super) struct Handles(Mutex<Vec<Free>>);

#[derive(Debug)]
struct Free(Handle);

// SAFETY: a handle may be used by one thread after another.
unsafe impl Send for Free {}

impl Context {
    /// cuBLAS for this call: on its stream, with `workspace` as the memory that it may use.
    ///
    /// The workspace makes cuBLAS usable in every graph mode, where its own memory is not.
    /// [`Blas::WORKSPACE`] bytes are what NVIDIA recommends for the largest GPUs.
    ///
    /// ```no_run
    /// use jax_callable::cuda::{Blas, Gemm};
    /// use jax_callable::prelude::*;
    ///
    /// #[jax_callable]
    /// fn matmul(
    ///     cx: &cuda::Context,
    ///     #[dims(n, k)] a: cuda::Array<f32, 2>,
    ///     #[dims(k, m)] b: cuda::Array<f32, 2>,
    ///     #[dims(n, m)] mut c: cuda::ArrayMut<f32, 2>,
    ///     #[dims(33_554_432)] mut workspace: cuda::ArrayMut<u8, 1>,
    /// ) -> Result<()> {
    ///     cx.blas(&mut workspace)?.gemm(Gemm::default(), &a, &b, &mut c)
    /// }
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// If cuBLAS cannot be found or started, or the workspace is empty.
    pub fn blas<'a, T: Element, D: DevicePtrMut<T>>(
        &'a self,
        workspace: &'a mut D,
    ) -> Result<Blas<'a>> {
        let size = workspace.len() * size_of::<T>();
        if size == 0 {
            return Err(Error::invalid_argument(format!(
                "the workspace for cuBLAS is empty: give it some memory, {} bytes by NVIDIA's \
                 advice",
                Blas::WORKSPACE
            )));
        }
        let cublas = Cublas::get()?;
        let handle = match self.handles().take() {
            Some(handle) => handle,
            None => {
                // SAFETY: a call's context is current.
                relaxed(|| unsafe { cublas.create() })?
            }
        };
        let (address, guard) = workspace.device_ptr_mut(self.stream());
        let blas = Blas {
            context: self,
            cublas,
            handle,
            _workspace: guard,
        };
        let stream = self.stream().cu_stream().cast();
        // SAFETY: the handle is this call's alone, as the workspace is while it is borrowed;
        // work that is queued with it comes before all that its memory is used for later.
        unsafe { cublas.prepare(handle, stream, address, size)? };
        Ok(blas)
    }
}

impl Handles {
    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Free>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Handle> {
        self.free().pop().map(|Free(handle)| handle)
    }

    fn put(&self, handle: Handle) {
        self.free().push(Free(handle));
    }
}

/// Does what a capture on this thread would otherwise forbid, such as an allocation. It is
/// not part of the capture.
fn relaxed<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let mut exchange = || {
        // SAFETY: it changes this thread's mode only, and gives the one before.
        unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) }.result()
    };
    exchange().map_err(|error| failed("cannot change the capture mode", error))?;
    let result = work();
    exchange().map_err(|error| failed("cannot change the capture mode back", error))?;
    result
}

impl Blas<'_> {
    /// The size of a workspace for the largest GPUs: 32 MiB.
    pub const WORKSPACE: usize = 32 << 20;

    /// The `cublasHandle_t`, for calls that are not here, while this is alive. Its stream and
    /// its workspace are those of the call.
    pub fn handle(&self) -> *mut c_void {
        self.handle
    }

    /// Queues the product of two matrices.
    ///
    /// # Errors
    /// If the shapes do not fit, a dimension has more than 31 bits, or cuBLAS refuses.
    pub fn gemm<T: BlasElement>(
        &mut self,
        gemm: Gemm<T::Scale>,
        a: &Array<'_, T, 2>,
        b: &Array<'_, T, 2>,
        c: &mut ArrayMut<'_, T, 2>,
    ) -> Result<()> {
        let batched = |[rows, columns]: [usize; 2], address| ([1, rows, columns], address);
        self.product::<T>(
            gemm,
            batched(a.shape(), a.device_ptr()),
            batched(b.shape(), b.device_ptr()),
            batched(c.shape(), c.device_ptr()),
        )
    }

    /// Queues the products of two stacks of matrices, one by one.
    ///
    /// # Errors
    /// If the shapes do not fit, a dimension has more than 31 bits, or cuBLAS refuses.
    pub fn gemm_batched<T: BlasElement>(
        &mut self,
        gemm: Gemm<T::Scale>,
        a: &Array<'_, T, 3>,
        b: &Array<'_, T, 3>,
        c: &mut ArrayMut<'_, T, 3>,
    ) -> Result<()> {
        self.product::<T>(
            gemm,
            (a.shape(), a.device_ptr()),
            (b.shape(), b.device_ptr()),
            (c.shape(), c.device_ptr()),
        )
    }

    fn product<T: BlasElement>(
        &mut self,
        gemm: Gemm<T::Scale>,
        a: ([usize; 3], u64),
        b: ([usize; 3], u64),
        c: ([usize; 3], u64),
    ) -> Result<()> {
        let Some(mut product) = plan(gemm.op_a, gemm.op_b, a.0, b.0, c.0)? else {
            return Ok(());
        };
        // Row by row, `c = a b` is what column by column is `c^T = b^T a^T`.
        (product.a.address, product.b.address, product.c.address) = (b.1, a.1, c.1);
        (product.dtype, product.compute) = (T::TYPE, T::COMPUTE);
        let (alpha, beta) = (&raw const gemm.alpha, &raw const gemm.beta);
        // SAFETY: the handle is this call's and prepared; the shapes fit, and the arrays have
        // them; the factors have the type of the computation.
        unsafe {
            self.cublas
                .gemm(self.handle, &product, alpha.cast(), beta.cast())
        }
    }
}

impl Drop for Blas<'_> {
    fn drop(&mut self) {
        self.context.handles().put(self.handle);
    }
}
