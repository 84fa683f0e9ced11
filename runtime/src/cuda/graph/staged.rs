//! Staging memory, and the copies between it and XLA's buffers.

use super::raw::{CaptureStream, Event};
use crate::cuda::driver::failed;
use crate::error::Result;
use cudarc::driver::sys::{self, CUDA_MEMCPY3D, CUgraphNode};
use std::mem::MaybeUninit;

/// Staging memory of a call site on a device.
pub(super) struct Memory {
    pub(super) address: u64,
    /// Behind the last use.
    pub(super) used: Event,
}

impl Memory {
    /// Allocates it, for use on any stream.
    pub(super) fn new(bytes: u64, stream: &CaptureStream) -> Result<Memory> {
        let used = Event::new()?;
        let mut address = 0;
        let what = format_args!("cannot allocate {bytes} bytes to stage arrays");
        // SAFETY: the stream is alive and not being captured, and the driver writes one
        // address.
        unsafe { sys::cuMemAllocAsync(&mut address, bytes as usize, stream.raw()) }
            .result()
            .map_err(|error| failed(what, error))?;
        let memory = Memory { address, used };
        // Once the stream has done it, all streams may use it.
        // SAFETY: as above.
        match unsafe { sys::cuStreamSynchronize(stream.raw()) }.result() {
            Ok(()) => Ok(memory),
            Err(error) => {
                memory.free(stream);
                Err(failed(what, error))
            }
        }
    }

    /// Takes note that a stream's work so far uses it. Where no mark can be put, the work is
    /// waited for instead: the next user, and the end, go by the mark.
    ///
    /// # Safety
    /// The stream is alive and not being captured.
    pub(super) unsafe fn mark(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: the caller's promise.
        let recorded = unsafe { self.used.record(stream) };
        recorded.or_else(|error| {
            // SAFETY: as above.
            let waited = unsafe { sys::cuStreamSynchronize(stream) }.result();
            waited.map_err(|_| error)
        })
    }

    /// Frees it behind its last use.
    pub(super) fn free(&self, stream: &CaptureStream) {
        // SAFETY: the stream and the event are alive, and the memory is used by nothing that
        // comes after the event. There is nobody to tell of an error.
        unsafe {
            if self.used.wait(stream.raw()).is_err() {
                sys::cuEventSynchronize(self.used.raw());
            }
            sys::cuMemFreeAsync(self.address, stream.raw());
        }
    }
}

/// A copy in a graph, between staging memory and a buffer that moves.
pub(super) struct CopyNode {
    node: CUgraphNode,
    bytes: u64,
    params: MaybeUninit<CUDA_MEMCPY3D>,
    /// Which buffer of the call moves, and whether it is what is read.
    buffer: usize,
    is_source: bool,
}

// SAFETY: what is pointed to belongs to the graph, which may be used by one thread after
// another.
unsafe impl Send for CopyNode {}

impl CopyNode {
    /// A copy of so many bytes, from or to a buffer of the call.
    ///
    /// # Safety
    /// The node is that copy, in one dimension and between device addresses.
    pub(super) unsafe fn new(
        node: CUgraphNode,
        bytes: u64,
        buffer: usize,
        is_source: bool,
    ) -> Result<CopyNode> {
        let mut params = MaybeUninit::zeroed();
        // SAFETY: the node is a copy of a graph that is alive; the driver writes all.
        unsafe { sys::cuGraphMemcpyNodeGetParams(node, params.as_mut_ptr()) }
            .result()
            .map_err(|error| failed("cannot look at a captured copy", error))?;
        Ok(CopyNode {
            node,
            bytes,
            params,
            buffer,
            is_source,
        })
    }

    /// The node and the size.
    pub(super) fn describe(&self) -> (CUgraphNode, u64) {
        (self.node, self.bytes)
    }

    /// Takes note that the executable was updated from a graph in which the copy is `new`.
    pub(super) fn take_params(&mut self, new: CopyNode) {
        self.params = new.params;
    }

    /// Moves the copy to where the buffer is now, for later launches.
    pub(super) fn follow(
        &mut self,
        executable: sys::CUgraphExec,
        context: sys::CUcontext,
        addresses: &[u64],
    ) -> Result<()> {
        let address = addresses[self.buffer];
        // SAFETY: the driver has written it.
        let params = unsafe { self.params.assume_init_mut() };
        let moving = match self.is_source {
            true => &mut params.srcDevice,
            false => &mut params.dstDevice,
        };
        if *moving == address {
            return Ok(());
        }
        let before = std::mem::replace(moving, address);
        // SAFETY: the executable is alive and was made from the node's graph; the buffer is
        // valid in the call that comes.
        let set = unsafe {
            sys::cuGraphExecMemcpyNodeSetParams(executable, self.node, params, context).result()
        };
        set.map_err(|error| {
            let moving = match self.is_source {
                true => &mut params.srcDevice,
                false => &mut params.dstDevice,
            };
            *moving = before;
            failed("cannot set the address of a copy in a CUDA graph", error)
        })
    }
}
