//! Where the buffers of a call are.

use crate::error::Result;
use std::marker::PhantomData;
use std::ptr;

/// Where a call's buffers are, and how its work gets there.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// In the host's memory.
    Host(PhantomData<&'a ()>),
    /// In the memory of a GPU.
    #[cfg(feature = "_cuda")]
    Cuda(&'a crate::cuda::Context),
}

impl Place<'_> {
    pub(super) const HOST: Self = Place::Host(PhantomData);

    pub(super) fn is_on_gpu(self) -> bool {
        !matches!(self, Place::Host(_))
    }

    /// Copies, in order with the call's other work.
    ///
    /// # Safety
    /// Both are addresses of at least `size` bytes there; they may overlap on the host.
    pub(super) unsafe fn copy(self, from: *const u8, to: *mut u8, size: usize) -> Result<()> {
        match self {
            Place::Host(_) => {
                // SAFETY: the caller's promise.
                unsafe { ptr::copy(from, to, size) };
                Ok(())
            }
            #[cfg(feature = "_cuda")]
            Place::Cuda(context) => {
                // SAFETY: the caller's promise.
                unsafe { context.copy(from.addr() as u64, to.addr() as u64, size) }
            }
        }
    }
}
