//! Copies within device memory, several in one call of the driver where it can.

use crate::cuda::driver::failed;
use crate::cuda::symbols::memcpy_batch;
use crate::error::Result;
use cudarc::driver::sys::{self, CUmemcpyAttributes, CUmemcpySrcAccessOrder};
use cudarc::driver::{DriverError, result};
use std::mem::MaybeUninit;

/// One copy: from, to, bytes.
pub(super) type Copy = (u64, u64, u64);

/// Queues copies, in any order.
///
/// # Safety
/// They are between addresses of device memory of these sizes, valid for the stream's work, and
/// no two overlap in what they write. The stream is not the default one and not being captured.
pub(super) unsafe fn copy_all(
    copies: impl Iterator<Item = Copy>,
    stream: sys::CUstream,
) -> Result<()> {
    let copies: Vec<_> = copies.collect();
    let Some(batch) = memcpy_batch().filter(|_| copies.len() > 1) else {
        // SAFETY: the caller's promise.
        return copies
            .iter()
            .try_for_each(|&each| unsafe { copy(each, stream) });
    };
    let mut from: Vec<_> = copies.iter().map(|&(from, ..)| from).collect();
    let mut to: Vec<_> = copies.iter().map(|&(_, to, _)| to).collect();
    let mut sizes: Vec<_> = copies.iter().map(|&(.., bytes)| bytes as usize).collect();
    let mut attributes = MaybeUninit::<CUmemcpyAttributes>::zeroed();
    // SAFETY: plain data, for which zero is right in what is not set here.
    unsafe {
        (*attributes.as_mut_ptr()).srcAccessOrder =
            CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    }
    let (mut first, mut failed_at) = (0, 0);
    // SAFETY: the lists have as many entries as there are copies, and one attribute is for all
    // from the first on; all else is the caller's promise.
    let status = unsafe {
        batch(
            to.as_mut_ptr(),
            from.as_mut_ptr(),
            sizes.as_mut_ptr(),
            copies.len(),
            attributes.as_mut_ptr(),
            &mut first,
            1,
            &mut failed_at,
            stream,
        )
    };
    status.result().map_err(not_copied)
}

/// Queues a copy.
///
/// # Safety
/// Both are addresses of device memory of this size, valid for the stream's work.
pub(super) unsafe fn copy((from, to, bytes): Copy, stream: sys::CUstream) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { result::memcpy_dtod_async(to, from, bytes as usize, stream) }.map_err(not_copied)
}

fn not_copied(error: DriverError) -> crate::error::Error {
    failed("cannot copy an array", error)
}
