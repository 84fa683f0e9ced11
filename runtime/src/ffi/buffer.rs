//! Buffers of a frame: what they are, and where they lie.

use super::sys;
use crate::dtype::DataType;
use crate::plan::MAX_PARAMS;
use crate::signature::BufferType;
use std::mem::MaybeUninit;

impl sys::Buffer {
    #[inline]
    pub(super) fn dims(&self) -> &[i64] {
        if self.rank <= 0 || self.dims.is_null() {
            // Without dimensions the pointer may be anything.
            return &[];
        }
        // SAFETY: XLA's buffers have `rank` dimensions.
        unsafe { std::slice::from_raw_parts(self.dims, self.rank as usize) }
    }

    pub(super) fn dtype(&self) -> Option<DataType> {
        DataType::from_xla(self.dtype)
    }

    /// The size in bytes, if this is a buffer of the type with that many batch axes in front,
    /// of a size that memory can have, and its data is there and aligned.
    #[inline(always)]
    pub(super) fn size_as(&self, ty: &BufferType, batch_rank: usize) -> Option<usize> {
        let rank = batch_rank + usize::from(ty.rank);
        if self.dtype != ty.dtype || self.rank != rank as i64 {
            return None;
        }
        let dims = self.dims();
        let size = size_in_bytes(usize::from(ty.size), dims)?;
        let address = self.data.addr();
        let is_wrong = address == 0 || address & usize::from(ty.align_mask) != 0;
        if (is_wrong && size > 0) || dims.len() != rank {
            return None;
        }
        Some(size)
    }

    /// Whether the last dimensions are those packed in an element.
    pub(super) fn has_packed(&self, packed: &[usize]) -> bool {
        let dims = self.dims().iter().rev();
        dims.zip(packed.iter().rev())
            .all(|(&dim, &packed)| dim == packed as i64)
    }
}

/// None for negative dimensions, and for sizes that no allocation can have.
#[inline(always)]
pub(super) fn size_in_bytes(scalar: usize, dims: &[i64]) -> Option<usize> {
    let mut size = scalar as u64;
    let mut is_wrong = false;
    let mut signs = 0;
    for &dim in dims {
        let (product, overflows) = size.overflowing_mul(dim as u64);
        is_wrong |= overflows;
        signs |= dim;
        size = product;
    }
    if is_wrong || signs < 0 || size > isize::MAX as u64 {
        return None;
    }
    Some(size as usize)
}

/// Whether two ranges of addresses share any.
#[inline(always)]
pub(super) fn overlap<T: Ord>(a: (T, T), b: (T, T)) -> bool {
    a.0.max(b.0) < a.1.min(b.1)
}

type Addresses = [MaybeUninit<u64>; 2 * MAX_PARAMS];

/// The addresses that the operands take, then those of the results. Only what is used is
/// initialised: all of it would cost more than the checks of a call.
pub(super) struct Ranges {
    pub(super) len: usize,
    starts: Addresses,
    ends: Addresses,
}

impl Ranges {
    #[inline]
    pub(super) fn new() -> Ranges {
        Ranges {
            len: 0,
            starts: [const { MaybeUninit::uninit() }; 2 * MAX_PARAMS],
            ends: [const { MaybeUninit::uninit() }; 2 * MAX_PARAMS],
        }
    }

    /// Writes an entry; `len` is raised when all are written.
    #[inline]
    pub(super) fn set(&mut self, index: usize, start: usize, size: usize) {
        self.starts[index].write(start as u64);
        self.ends[index].write(start.saturating_add(size) as u64);
    }

    /// Where each begins.
    #[inline]
    pub(super) fn starts(&self) -> &[u64] {
        self.written(&self.starts)
    }

    /// Whether two of them share an address.
    #[inline(always)]
    pub(super) fn overlap(&self, a: usize, b: usize) -> bool {
        let (starts, ends) = (self.starts(), self.written(&self.ends));
        overlap((starts[a], ends[a]), (starts[b], ends[b]))
    }

    #[inline]
    fn written<'a>(&self, addresses: &'a Addresses) -> &'a [u64] {
        let addresses = &addresses[..self.len];
        // SAFETY: the first `len` entries were written.
        unsafe { std::slice::from_raw_parts(addresses.as_ptr().cast(), addresses.len()) }
    }
}
