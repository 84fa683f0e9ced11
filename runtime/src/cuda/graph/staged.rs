//! Staging memory, and the copies between it and XLA's buffers.

use super::copies::copy;
use super::stream::OwnStream;
use crate::cuda::capture::last_node;
use crate::cuda::driver::failed;
use crate::error::Result;
use crate::graph::staging::SlotCopy;
use cudarc::driver::sys::{self, CUDA_MEMCPY3D, CUgraphNode};
use std::mem::MaybeUninit;

/// Staging memory of a call site on a device, which only the site's own stream uses.
pub(super) struct Memory {
    pub(super) address: u64,
}

impl Memory {
    /// Allocates it, for what comes on the stream.
    pub(super) fn new(bytes: u64, stream: &OwnStream) -> Result<Memory> {
        let mut address = 0;
        // SAFETY: the stream is alive and not being captured, and the driver writes one
        // address.
        unsafe { sys::cuMemAllocAsync(&mut address, bytes as usize, stream.raw()) }
            .result()
            .map_err(|error| {
                let what = format_args!("cannot allocate {bytes} bytes to stage arrays");
                failed(what, error)
            })?;
        Ok(Memory { address })
    }

    /// Frees it behind its last use.
    pub(super) fn free(&self, stream: &OwnStream) {
        // SAFETY: the stream is alive, and nothing that comes on it uses the memory. There is
        // nobody to tell of an error.
        unsafe { sys::cuMemFreeAsync(self.address, stream.raw()) };
    }
}

/// Captures copies from buffers to their slots in staging memory, or from there, one after another:
/// side by side they are not faster, and take the host longer to launch.
///
/// # Safety
/// The stream is being captured. `addresses` are those of the call's buffers, and there is staging
/// memory at `memory`, both with room for the copies.
pub(super) unsafe fn capture_copies(
    copies: &[SlotCopy],
    is_before: bool,
    addresses: &[u64],
    memory: u64,
    stream: sys::CUstream,
) -> Result<Vec<CopyNode>> {
    let copies = copies.iter();
    let nodes = copies.map(
        |&SlotCopy {
             buffer,
             offset,
             bytes,
         }| {
            let (outside, slot) = (addresses[buffer], memory + offset);
            let (from, to) = match is_before {
                true => (outside, slot),
                false => (slot, outside),
            };
            // SAFETY: the caller's promise; the last node is this copy.
            unsafe {
                copy((from, to, bytes), stream)?;
                CopyNode::new(last_node(stream)?, bytes, buffer, is_before)
            }
        },
    );
    nodes.collect()
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
    unsafe fn new(
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
