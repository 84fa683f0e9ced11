//! Copies within device memory.

use crate::cuda::driver::failed;
use crate::error::Result;
use cudarc::driver::{result, sys};

/// One copy: from, to, bytes.
pub(super) type Copy = (u64, u64, u64);

/// Queues a copy, or captures it.
///
/// # Safety
/// Both are addresses of device memory of this size, valid for the stream's work.
pub(super) unsafe fn copy((from, to, bytes): Copy, stream: sys::CUstream) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { result::memcpy_dtod_async(to, from, bytes as usize, stream) }
        .map_err(|error| failed("cannot copy an array", error))
}
