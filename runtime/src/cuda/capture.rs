//! The graph that a stream is being captured into, and what of it outlives the call.
//!
//! A captured copy reads or writes host memory when the graph is launched, not when it is
//! captured: by then a `Vec` of the body is gone. So the copies that a body adds are looked at,
//! and only those from memory that the graph owns are let through.

use super::driver::failed;
use super::symbols::{capture_info, present};
use crate::error::{Code, Error, Result};
use cudarc::driver::CudaStream;
use cudarc::driver::sys::{
    self, CUDA_MEMCPY3D, CUgraph, CUgraphNode, CUgraphNodeType, CUmemorytype, CUpointer_attribute,
    CUresult, CUstreamCaptureStatus,
};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

/// A capture that is under way.
pub(crate) struct Capture {
    /// The driver gives it to no other, while a graph may be where one was that is gone.
    id: u64,
    graph: CUgraph,
    /// The nodes that were there before the body.
    before: Vec<CUgraphNode>,
}

/// The graph that a stream is being captured into, if it is.
pub(super) fn graph_of(stream: &CudaStream) -> Result<Option<CUgraph>> {
    Ok(id_and_graph(stream)?.map(|(_, graph)| graph))
}

/// The id of the capture that a stream is in, and its graph.
fn id_and_graph(stream: &CudaStream) -> Result<Option<(u64, CUgraph)>> {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut id, mut graph) = (0, ptr::null_mut());
    // SAFETY: the stream is alive, and of the outputs only the status is not optional.
    let result = unsafe {
        present(capture_info())?(
            stream.cu_stream(),
            &mut status,
            &mut id,
            &mut graph,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    let what = "cannot ask for the graph that is being captured";
    result.result().map_err(|error| failed(what, error))?;
    match status {
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE => Ok(None),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE => Ok(Some((id, graph))),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED => {
            Err(Error::failed_precondition(
                "the capture into a CUDA graph was broken by something that cannot be captured",
            ))
        }
    }
}

/// The node that was captured last on a stream, which captures.
pub(super) fn last_node(stream: sys::CUstream) -> Result<CUgraphNode> {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut nodes, mut count) = (ptr::null(), 0);
    // SAFETY: the stream is alive, and all but the status is optional.
    let result = unsafe {
        present(capture_info())?(
            stream,
            &mut status,
            ptr::null_mut(),
            ptr::null_mut(),
            &mut nodes,
            &mut count,
        )
    };
    let what = "cannot ask for the node that was captured";
    result.result().map_err(|error| failed(what, error))?;
    if count != 1 {
        return Err(Error::internal(format!("{what}: there are {count}")));
    }
    // SAFETY: the driver's list has one entry, and stays until the stream's next call.
    Ok(unsafe { *nodes })
}

impl Capture {
    /// The capture under way on a stream, if there is one, before the body runs.
    pub(super) fn of(stream: &CudaStream) -> Result<Option<Capture>> {
        let Some((id, graph)) = id_and_graph(stream)? else {
            return Ok(None);
        };
        let before = nodes(graph)?;
        Ok(Some(Capture { id, graph, before }))
    }

    /// The number of nodes now.
    pub(super) fn len(&self) -> Result<usize> {
        count_nodes(self.graph)
    }

    /// Refuses what the body has added, beside that many kernels, and must not: copies between the
    /// device and host memory that is not `owned` by the graph.
    pub(super) fn check(
        &self,
        stream: &CudaStream,
        num_kernels: usize,
        owned: &[Range<usize>],
    ) -> Result<()> {
        // A broken capture has no graph to look at, and one that the body has ended may have
        // taken it along.
        if id_and_graph(stream)? != Some((self.id, self.graph)) {
            return Err(Error::failed_precondition(
                "the body has ended the capture into a CUDA graph that it ran in",
            ));
        }
        if count_nodes(self.graph)? == self.before.len() + num_kernels {
            return Ok(());
        }
        let added = nodes(self.graph)?;
        let added = added.into_iter().filter(|node| !self.before.contains(node));
        check_nodes(added, owned)
    }
}

/// Refuses copies between the device and host memory that is not `owned`.
fn check_nodes(nodes: impl IntoIterator<Item = CUgraphNode>, owned: &[Range<usize>]) -> Result<()> {
    const COPY: u32 = CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY as u32;
    const GRAPH: u32 = CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH as u32;
    for node in nodes {
        match kind(node)? {
            COPY => check_copy(node, owned)?,
            GRAPH => {
                let mut graph = ptr::null_mut();
                // SAFETY: the node is of this kind, in a graph that is alive.
                unsafe { sys::cuGraphChildGraphNodeGetGraph(node, &mut graph) }
                    .result()
                    .map_err(|error| failed("cannot look into a child graph", error))?;
                check_nodes(self::nodes(graph)?, owned)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_copy(node: CUgraphNode, owned: &[Range<usize>]) -> Result<()> {
    let mut copy = MaybeUninit::<CUDA_MEMCPY3D>::zeroed();
    // SAFETY: the node is a copy, in a graph that is alive; its type has a zero value in the
    // driver's own terms, and the driver writes all of it.
    let copy = unsafe {
        sys::cuGraphMemcpyNodeGetParams(node, copy.as_mut_ptr())
            .result()
            .map_err(|error| failed("cannot look at a captured copy", error))?;
        copy.assume_init()
    };
    let from = host_address(copy.srcMemoryType, copy.srcHost, copy.srcDevice);
    let to = host_address(
        copy.dstMemoryType,
        copy.dstHost.cast_const(),
        copy.dstDevice,
    );
    match (from, to) {
        (None, None) => Ok(()),
        (Some(from), None) if owned.iter().any(|range| range.contains(&from)) => Ok(()),
        (Some(_), _) => Err(Error::new(
            Code::FailedPrecondition,
            "a captured copy from host memory would read that memory again at every launch of the \
             graph, when it may be gone: copy it with `cx.upload`, which keeps it for the graph, \
             or use graph_mode = None",
        )),
        (None, Some(_)) => Err(Error::new(
            Code::FailedPrecondition,
            "a captured copy to host memory would write there at every launch of the graph, when \
             that memory may be gone: use graph_mode = None",
        )),
    }
}

/// The address of one side of a copy, if it is in host memory.
fn host_address(kind: CUmemorytype, host: *const c_void, device: u64) -> Option<usize> {
    match kind {
        CUmemorytype::CU_MEMORYTYPE_HOST => Some(host.addr()),
        // An address of either, as `cuMemcpyAsync` takes it.
        CUmemorytype::CU_MEMORYTYPE_UNIFIED => (!is_device(device)).then_some(device as usize),
        _ => None,
    }
}

/// Whether the driver knows an address as device or managed memory. Host memory that it does
/// not know at all is none.
pub(super) fn is_device(address: u64) -> bool {
    memory_type(address) == Some(CUmemorytype::CU_MEMORYTYPE_DEVICE as u32)
}

/// Whether the driver has pinned the host memory at an address, so that copies read it later.
pub(super) fn is_pinned(address: usize) -> bool {
    memory_type(address as u64).is_some()
}

fn memory_type(address: u64) -> Option<u32> {
    let mut kind = 0_u32;
    // SAFETY: the attribute is one `unsigned int`; any address may be asked about.
    let result = unsafe {
        sys::cuPointerGetAttribute(
            (&raw mut kind).cast(),
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            address,
        )
    };
    (result == CUresult::CUDA_SUCCESS).then_some(kind)
}

/// A node's kind, as a number: newer drivers have kinds that the bindings do not know.
pub(super) fn kind(node: CUgraphNode) -> Result<u32> {
    let mut kind = 0_u32;
    // SAFETY: the node is in a graph that is alive, and a kind is an `unsigned int`.
    unsafe { sys::cuGraphNodeGetType(node, (&raw mut kind).cast()) }
        .result()
        .map_err(|error| failed("cannot look at a captured node", error))?;
    Ok(kind)
}

fn count_nodes(graph: CUgraph) -> Result<usize> {
    let mut count = 0;
    // SAFETY: the graph is alive, and the driver writes one number.
    unsafe { sys::cuGraphGetNodes(graph, ptr::null_mut(), &mut count) }
        .result()
        .map_err(|error| failed("cannot count the captured nodes", error))?;
    Ok(count)
}

pub(super) fn nodes(graph: CUgraph) -> Result<Vec<CUgraphNode>> {
    let mut count = count_nodes(graph)?;
    let mut nodes = vec![ptr::null_mut(); count];
    if count > 0 {
        // SAFETY: the graph is alive, and there is room for the nodes that were counted; only
        // this thread adds any.
        unsafe { sys::cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count) }
            .result()
            .map_err(|error| failed("cannot look at the captured nodes", error))?;
    }
    nodes.truncate(count);
    Ok(nodes)
}
