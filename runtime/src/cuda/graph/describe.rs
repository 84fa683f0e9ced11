//! Graphs as data, and data written back into executables.

use super::raw::{Executable, Graph};
use crate::cuda::capture;
use crate::cuda::driver::failed;
use crate::cuda::module::param_sizes;
use crate::cuda::symbols::{graph_edges, present};
use crate::error::{Error, Result};
use crate::graph::description::{Description, Kernel, Memset, Node};
use crate::graph::image::Image;
use cudarc::driver::sys::{
    self, CUDA_KERNEL_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS, CUgraphNode, CUgraphNodeType,
    CUkernelNodeAttrID, CUkernelNodeAttrValue, CUresult,
};
use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

/// What can be told of a kernel's launch beside its parameters.
const ATTRIBUTES: &[CUkernelNodeAttrID] = &[
    CUkernelNodeAttrID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
    CUkernelNodeAttrID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CUkernelNodeAttrID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
    CUkernelNodeAttrID::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    CUkernelNodeAttrID::CU_LAUNCH_ATTRIBUTE_PRIORITY,
    CUkernelNodeAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
    CUkernelNodeAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
    CUkernelNodeAttrID::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
];

/// Describes a graph, of whose nodes these are our own staging copies.
pub(super) fn describe(
    graph: &Graph,
    copies: impl Iterator<Item = (CUgraphNode, u64)>,
) -> Result<Description> {
    let nodes = capture::nodes(graph.raw())?;
    let copies: HashMap<_, _> = copies.collect();
    let described = nodes.iter().map(|&node| match copies.get(&node) {
        Some(&bytes) => Ok(Node::Copy { bytes }),
        None => describe_node(node),
    });
    let described = described.collect::<Result<Vec<_>>>()?;
    Ok(Description::new(described, edges(graph, &nodes)?))
}

fn describe_node(node: CUgraphNode) -> Result<Node> {
    const KERNEL: u32 = CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL as u32;
    const MEMSET: u32 = CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET as u32;
    const MEMCPY: u32 = CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY as u32;
    const HOST: u32 = CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST as u32;
    const GRAPH: u32 = CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH as u32;
    const MEM_ALLOC: u32 = CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC as u32;
    const MEM_FREE: u32 = CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE as u32;
    const CONDITIONAL: u32 = CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL as u32;
    Ok(match capture::kind(node)? {
        KERNEL => match kernel(node)? {
            Some(kernel) => Node::Kernel(kernel),
            None => Node::Other("kernel with parameters that the driver does not tell"),
        },
        MEMSET => Node::Memset(memset(node)?),
        MEMCPY => Node::Other("copy"),
        HOST => Node::Other("call of the host"),
        GRAPH => Node::Other("child graph"),
        MEM_ALLOC => Node::Other("allocation"),
        MEM_FREE => Node::Other("free"),
        CONDITIONAL => Node::Other("condition"),
        _ => Node::Other("node of another kind"),
    })
}

fn kernel(node: CUgraphNode) -> Result<Option<Kernel>> {
    let params = kernel_params(node)?;
    // Launched by a handle that cannot be asked, or with its parameters in one piece.
    if params.func.is_null() || !params.extra.is_null() {
        return Ok(None);
    }
    // A driver that knows too little of a function may say that it has none.
    let Some(sizes) = param_sizes(params.func).filter(|sizes| !sizes.is_empty()) else {
        return Ok(None);
    };
    let mut bytes = Vec::with_capacity(sizes.len());
    for (i, size) in sizes.into_iter().enumerate() {
        if params.kernelParams.is_null() {
            return Ok(None);
        }
        // SAFETY: the node keeps a pointer to each of its function's parameters, of the
        // function's sizes, as long as nobody changes it.
        let param =
            unsafe { std::slice::from_raw_parts((*params.kernelParams.add(i)).cast(), size) };
        bytes.push(Box::from(param));
    }
    let mut attributes = Vec::new();
    for &attribute in ATTRIBUTES {
        let mut value = MaybeUninit::<CUkernelNodeAttrValue>::zeroed();
        // SAFETY: the node is a kernel, and the driver writes the value.
        let status =
            unsafe { sys::cuGraphKernelNodeGetAttribute(node, attribute, value.as_mut_ptr()) };
        attributes.push(u8::from(status == CUresult::CUDA_SUCCESS));
        if status == CUresult::CUDA_SUCCESS {
            // SAFETY: all of its bytes were zero, and what the driver wrote are bytes too.
            attributes.extend_from_slice(unsafe {
                std::slice::from_raw_parts(value.as_ptr().cast::<u8>(), size_of_val(&value))
            });
        }
    }
    Ok(Some(Kernel {
        function: params.func.addr() as u64,
        grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
        block: [params.blockDimX, params.blockDimY, params.blockDimZ],
        shared: params.sharedMemBytes,
        attributes,
        stack_words: stack_words(&bytes),
        params: bytes,
    }))
}

/// The words of parameters that point into the stack of this thread. Bodies ran on it, and are over.
fn stack_words(params: &[Box<[u8]>]) -> Vec<(usize, usize)> {
    /// So far from here, up or down, is a stack: smaller than any that runs a body. Beyond its end may
    /// be a buffer of a call, but at made-up addresses none is, and both captures must have a word.
    const NEAR: u64 = 256 << 10;
    let local = 0_u8;
    let here = (&raw const local).addr() as u64;
    let mut found = Vec::new();
    for (param, bytes) in params.iter().enumerate() {
        for (word, bytes) in bytes.chunks_exact(8).enumerate() {
            let value = bytes.first_chunk().copied().map(u64::from_ne_bytes);
            if value.is_some_and(|value| value.abs_diff(here) < NEAR) {
                found.push((param, 8 * word));
            }
        }
    }
    found
}

fn kernel_params(node: CUgraphNode) -> Result<CUDA_KERNEL_NODE_PARAMS> {
    let mut params = MaybeUninit::zeroed();
    // SAFETY: the node is a kernel of a graph that is alive, and the driver writes all.
    unsafe {
        sys::cuGraphKernelNodeGetParams_v2(node, params.as_mut_ptr())
            .result()
            .map_err(|error| failed("cannot look at a captured kernel", error))?;
        Ok(params.assume_init())
    }
}

fn memset(node: CUgraphNode) -> Result<Memset> {
    let mut params = MaybeUninit::<CUDA_MEMSET_NODE_PARAMS>::zeroed();
    // SAFETY: the node is a memset of a graph that is alive, and the driver writes all.
    let params = unsafe {
        sys::cuGraphMemsetNodeGetParams(node, params.as_mut_ptr())
            .result()
            .map_err(|error| failed("cannot look at a captured memset", error))?;
        params.assume_init()
    };
    Ok(Memset {
        dst: params.dst,
        value: params.value,
        element_size: params.elementSize,
        width: params.width as u64,
        height: params.height as u64,
    })
}

fn edges(graph: &Graph, nodes: &[CUgraphNode]) -> Result<Vec<(u32, u32)>> {
    let mut count = 0;
    let what = "cannot look at the edges of a captured graph";
    let graph_edges = present(graph_edges())?;
    // SAFETY: the graph is alive; the second call has room for what the first has counted.
    // Edges with data of their own are an error.
    let (from, to) = unsafe {
        graph_edges(graph.raw(), ptr::null_mut(), ptr::null_mut(), &mut count)
            .result()
            .map_err(|error| failed(what, error))?;
        let mut from = vec![ptr::null_mut(); count];
        let mut to = from.clone();
        if count > 0 {
            graph_edges(graph.raw(), from.as_mut_ptr(), to.as_mut_ptr(), &mut count)
                .result()
                .map_err(|error| failed(what, error))?;
        }
        (from, to)
    };
    let numbers: HashMap<_, _> = nodes.iter().zip(0_u32..).collect();
    let number = |node: &CUgraphNode| {
        let number = numbers.get(node).copied();
        number.ok_or_else(|| Error::internal(format!("{what}: it has none of its nodes")))
    };
    let edges = from.iter().zip(&to);
    edges
        .map(|(from, to)| Ok((number(from)?, number(to)?)))
        .collect()
}

/// Whether two graphs are the same but for the parameters of kernels and memsets.
pub(super) fn are_alike(a: &Description, b: &Description) -> bool {
    a.edges() == b.edges()
        && a.nodes.len() == b.nodes.len()
        && a.nodes.iter().zip(&b.nodes).all(|nodes| match nodes {
            (Node::Kernel(a), Node::Kernel(b)) => {
                (a.function, a.grid, a.block, a.shared) == (b.function, b.grid, b.block, b.shared)
                    && a.attributes == b.attributes
            }
            (Node::Memset(_), Node::Memset(_)) => true,
            (a, b) => a == b,
        })
}

/// The nodes of a graph, to write parameters into what was instantiated from it.
pub(super) struct Nodes(Vec<CUgraphNode>);

// SAFETY: the nodes belong to a graph, which may be used by one thread after another.
unsafe impl Send for Nodes {}

impl Nodes {
    pub(super) fn of(graph: &Graph) -> Result<Nodes> {
        capture::nodes(graph.raw()).map(Nodes)
    }

    /// Gives nodes other parameters, for later launches of the executable.
    ///
    /// # Safety
    /// The graph is alive, and the executable was instantiated from it. The nodes were described
    /// as ones that differ from the image in addresses only, and these may be launched.
    pub(super) unsafe fn write(
        &self,
        executable: &Executable,
        context: sys::CUcontext,
        image: &Image,
    ) -> Result<()> {
        let executable = executable.raw();
        let what = "cannot set the addresses of a node in a CUDA graph";
        let mut params: Vec<*mut c_void> = Vec::new();
        for kernel in &image.kernels {
            params.clear();
            params.extend(
                image
                    .params(kernel)
                    .map(|at| at.cast_mut().cast::<c_void>()),
            );
            let mut launch = MaybeUninit::<CUDA_KERNEL_NODE_PARAMS>::zeroed();
            // SAFETY: plain data, for which zero is right in what is not set here. The driver
            // reads the parameters, which have their sizes, during the call.
            let status = unsafe {
                let fields = launch.assume_init_mut();
                fields.func =
                    ptr::without_provenance_mut::<c_void>(kernel.function as usize).cast();
                [fields.gridDimX, fields.gridDimY, fields.gridDimZ] = kernel.grid;
                [fields.blockDimX, fields.blockDimY, fields.blockDimZ] = kernel.block;
                fields.sharedMemBytes = kernel.shared;
                fields.kernelParams = params.as_mut_ptr();
                let node = self.0[kernel.node];
                sys::cuGraphExecKernelNodeSetParams_v2(executable, node, launch.as_ptr())
            };
            status.result().map_err(|error| failed(what, error))?;
        }
        for &(node, memset) in &image.memsets {
            let params = CUDA_MEMSET_NODE_PARAMS {
                dst: memset.dst,
                pitch: 0,
                value: memset.value,
                elementSize: memset.element_size,
                width: memset.width as usize,
                height: memset.height as usize,
            };
            // SAFETY: the caller's promise.
            let status = unsafe {
                sys::cuGraphExecMemsetNodeSetParams(executable, self.0[node], &params, context)
            };
            status.result().map_err(|error| failed(what, error))?;
        }
        Ok(())
    }
}
