//! cuBLAS, bound here in the few calls that are used.
//!
//! `cudarc` looks for the library of one CUDA version; this takes the one that JAX uses too,
//! whatever version that is built for. The calls are the same in CUDA 12 and 13.

use super::{driver, library};
use crate::error::{Code, Error, Result};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

pub(super) type Handle = *mut c_void;
type Status = c_int;

/// The functions, once the library is open.
pub(super) struct Cublas {
    create: unsafe extern "C" fn(*mut Handle) -> Status,
    set_stream: unsafe extern "C" fn(Handle, *mut c_void) -> Status,
    set_workspace: unsafe extern "C" fn(Handle, *mut c_void, usize) -> Status,
    gemm: unsafe extern "C" fn(
        Handle,
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        *const c_void,
        *const c_void,
        c_int,
        c_int,
        i64,
        *const c_void,
        c_int,
        c_int,
        i64,
        *const c_void,
        *mut c_void,
        c_int,
        c_int,
        i64,
        c_int,
        c_int,
        c_int,
    ) -> Status,
    status_string: unsafe extern "C" fn(Status) -> *const c_char,
}

/// An operand of a product: its address, the elements from one row of the other order to the
/// next, and from one matrix to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Matrix {
    pub(super) address: u64,
    pub(super) leading: c_int,
    pub(super) stride: i64,
    /// `cublasOperation_t`
    pub(super) operation: c_int,
}

/// A product of column-major matrices, as cuBLAS takes it: `c <- alpha op(a) op(b) + beta c`,
/// where `op(a)` is `m` times `k` and `op(b)` is `k` times `n`.
#[derive(Debug)]
pub(super) struct Product {
    pub(super) m: c_int,
    pub(super) n: c_int,
    pub(super) k: c_int,
    pub(super) a: Matrix,
    pub(super) b: Matrix,
    pub(super) c: Matrix,
    pub(super) batch: c_int,
    /// `cudaDataType_t`
    pub(super) dtype: c_int,
    /// `cublasComputeType_t`
    pub(super) compute: c_int,
}

/// The default algorithm, `CUBLAS_GEMM_DEFAULT`.
const DEFAULT: c_int = -1;

impl Cublas {
    pub(super) fn get() -> Result<&'static Cublas> {
        static CUBLAS: OnceLock<std::result::Result<Cublas, String>> = OnceLock::new();
        let names = library::names("libcublas.so", driver::require()?);
        let cublas = CUBLAS.get_or_init(|| {
            let (library, name) = library::open(&names).map_err(|reasons| {
                format!(
                    "cuBLAS cannot be opened ({reasons}): install it (pip install 'jax[cuda13]' or \
                     'jax[cuda12]' brings it), or put its folder into LD_LIBRARY_PATH"
                )
            })?;
            Cublas::find(library).map_err(|error| format!("{name} is damaged: {error}"))
        });
        cublas.as_ref().map_err(Error::failed_precondition)
    }

    fn find(library: Library) -> std::result::Result<Cublas, libloading::Error> {
        // SAFETY: these functions have had these types since CUDA 11.4.
        let cublas = unsafe {
            Cublas {
                create: *library.get(b"cublasCreate_v2\0")?,
                set_stream: *library.get(b"cublasSetStream_v2\0")?,
                set_workspace: *library.get(b"cublasSetWorkspace_v2\0")?,
                gemm: *library.get(b"cublasGemmStridedBatchedEx\0")?,
                status_string: *library.get(b"cublasGetStatusString\0")?,
            }
        };
        // The functions are used to the end of the process.
        std::mem::forget(library);
        Ok(cublas)
    }

    /// # Safety
    /// The device's primary context is current.
    pub(super) unsafe fn create(&self) -> Result<Handle> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the caller's promise.
        self.check(unsafe { (self.create)(&mut handle) }, "cublasCreate")?;
        Ok(handle)
    }

    /// Sets where a handle's work goes, and what memory it may use for it.
    ///
    /// # Safety
    /// The handle is alive and used by nobody else; the stream and the memory are of its
    /// device, and stay until the handle is given others or the work is done.
    pub(super) unsafe fn prepare(
        &self,
        handle: Handle,
        stream: *mut c_void,
        workspace: u64,
        size: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promise. A new stream takes the workspace away: hence the order.
        unsafe {
            self.check((self.set_stream)(handle, stream), "cublasSetStream")?;
            let workspace = workspace as *mut c_void;
            let status = (self.set_workspace)(handle, workspace, size);
            self.check(status, "cublasSetWorkspace")
        }
    }

    /// Queues a product.
    ///
    /// # Safety
    /// The handle is alive, prepared and used by nobody else; the matrices are in memory of
    /// its device and of the given sizes; `alpha` and `beta` point to what the type of the
    /// computation says.
    pub(super) unsafe fn gemm(
        &self,
        handle: Handle,
        product: &Product,
        alpha: *const c_void,
        beta: *const c_void,
    ) -> Result<()> {
        let Product {
            m,
            n,
            k,
            a,
            b,
            c,
            batch,
            dtype,
            compute,
        } = *product;
        // SAFETY: the caller's promise.
        let status = unsafe {
            (self.gemm)(
                handle,
                a.operation,
                b.operation,
                m,
                n,
                k,
                alpha,
                a.address as *const c_void,
                dtype,
                a.leading,
                a.stride,
                b.address as *const c_void,
                dtype,
                b.leading,
                b.stride,
                beta,
                c.address as *mut c_void,
                dtype,
                c.leading,
                c.stride,
                batch,
                compute,
                DEFAULT,
            )
        };
        self.check(status, "cublasGemmStridedBatchedEx")
    }

    fn check(&self, status: Status, what: &str) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: cuBLAS has a constant text for every number.
        let text = unsafe { CStr::from_ptr((self.status_string)(status)) };
        let text = text.to_string_lossy();
        // CUBLAS_STATUS_ALLOC_FAILED
        let code = if status == 3 {
            Code::ResourceExhausted
        } else {
            Code::Internal
        };
        Err(Error::new(code, format!("{what}: {text}")))
    }
}
