//! Graphs.

use super::module::params_of;
use super::{number, put};
use crate::driver::call::driver;
use crate::driver::memory::pointer;
use crate::driver::work::{Copy, HostCall, Kernel, Memset, Side, UserObject, Work};
use crate::driver::world::World;
use crate::driver::{Fault, Result, misuse};
use cudarc::driver::sys::{
    CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUgraph,
    CUgraphExec, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo, CUgraphNode, CUmemorytype,
    CUresult, CUstream, CUuserObject,
};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

driver! {
    Done cuGraphDestroy(graph: CUgraph) |world| { world.destroy_graph(number(graph)) }
    None cuGraphGetNodes(graph: CUgraph, out: *mut CUgraphNode, count: *mut usize) |world| {
        let nodes = &world.graphs.get(number(graph))?.nodes;
        if out.is_null() {
            put(count, nodes.len());
            return Ok(());
        }
        for (i, &node) in nodes.iter().take(*count).enumerate() {
            put(out.add(i), pointer(node));
        }
        put(count, nodes.len().min(*count));
        Ok(())
    }
    None cuGraphGetEdges(
        graph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        count: *mut usize,
    ) |world| {
        let nodes = &world.graphs.get(number(graph))?.nodes;
        let mut edges = Vec::new();
        for &node in nodes {
            let after = &world.nodes.get(node)?.after;
            edges.extend(after.iter().map(|&other| (other, node)));
        }
        if from.is_null() {
            put(count, edges.len());
            return Ok(());
        }
        // In no order that a caller could rely on.
        for (i, &(first, second)) in edges.iter().rev().take(*count).enumerate() {
            put(from.add(i), pointer(first));
            put(to.add(i), pointer(second));
        }
        Ok(())
    }
    None cuGraphNodeGetType(node: CUgraphNode, kind: *mut u32) |world| {
        put(kind, world.nodes.get(number(node))?.work.kind());
        Ok(())
    }
    None cuGraphChildGraphNodeGetGraph(_node: CUgraphNode, _graph: *mut CUgraph) |_world| {
        Err(CUresult::CUDA_ERROR_NOT_SUPPORTED.into())
    }
    None cuGraphKernelNodeGetParams_v2(node: CUgraphNode, out: *mut CUDA_KERNEL_NODE_PARAMS)
    |world| {
        let node = world.nodes.get(number(node))?;
        let Work::Kernel(kernel) = &node.work else {
            return Err(other_kind());
        };
        put(out, CUDA_KERNEL_NODE_PARAMS {
            func: pointer(kernel.function),
            gridDimX: kernel.grid[0],
            gridDimY: kernel.grid[1],
            gridDimZ: kernel.grid[2],
            blockDimX: kernel.block[0],
            blockDimY: kernel.block[1],
            blockDimZ: kernel.block[2],
            sharedMemBytes: kernel.shared,
            kernelParams: node.params.as_ptr().cast_mut(),
            extra: null_mut(),
            kern: null_mut(),
            ctx: null_mut(),
        });
        Ok(())
    }
    None cuGraphKernelNodeGetAttribute(node: CUgraphNode, _attribute: u32, value: *mut [u8; 64])
    |world| {
        match &world.nodes.get(number(node))?.work {
            Work::Kernel(_) => {
                put(value, [0; 64]);
                Ok(())
            }
            _ => Err(other_kind()),
        }
    }
    None cuGraphMemsetNodeGetParams(node: CUgraphNode, out: *mut CUDA_MEMSET_NODE_PARAMS)
    |world| {
        let Work::Memset(memset) = world.nodes.get(number(node))?.work else {
            return Err(other_kind());
        };
        put(out, CUDA_MEMSET_NODE_PARAMS {
            dst: memset.dst,
            pitch: 0,
            value: memset.value,
            elementSize: memset.element,
            width: memset.width,
            height: 1,
        });
        Ok(())
    }
    None cuGraphMemcpyNodeGetParams(node: CUgraphNode, out: *mut CUDA_MEMCPY3D) |world| {
        let Work::Copy(copy) = world.nodes.get(number(node))?.work else {
            return Err(other_kind());
        };
        out.write_bytes(0, 1);
        (*out).WidthInBytes = copy.bytes;
        (*out).Height = 1;
        (*out).Depth = 1;
        (*out).srcMemoryType = memory_type(copy.from);
        (*out).dstMemoryType = memory_type(copy.to);
        match copy.from {
            Side::Host(address) => (*out).srcHost = pointer::<c_void>(address),
            Side::Device(address) => (*out).srcDevice = address,
        }
        match copy.to {
            Side::Host(address) => (*out).dstHost = pointer(address),
            Side::Device(address) => (*out).dstDevice = address,
        }
        Ok(())
    }
    None cuGraphInstantiateWithFlags(out: *mut CUgraphExec, graph: CUgraph, _flags: u64) |world| {
        put(out, pointer(world.instantiate(number(graph))?));
        Ok(())
    }
    Done cuGraphExecDestroy(executable: CUgraphExec) |world| {
        world.unless_restricted()?;
        world.executables.remove(number(executable))?;
        Ok(())
    }
    None cuGraphLaunch(executable: CUgraphExec, stream: CUstream) |world| {
        world.launch(number(executable), number(stream))
    }
    None cuGraphExecUpdate_v2(
        executable: CUgraphExec,
        graph: CUgraph,
        info: *mut CUgraphExecUpdateResultInfo,
    ) |world| {
        let result = world.update(number(executable), number(graph))?;
        put(&raw mut (*info).result, result);
        match result {
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS => Ok(()),
            _ => Err(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE.into()),
        }
    }
    None cuGraphExecKernelNodeSetParams_v2(
        executable: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS,
    ) |world| {
        let params = &*params;
        let function = number(params.func);
        let kernel = Kernel {
            function,
            grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
            block: [params.blockDimX, params.blockDimY, params.blockDimZ],
            shared: params.sharedMemBytes,
            params: params_of(world, function, params.kernelParams)?,
        };
        world.set_node(number(executable), number(node), Work::Kernel(kernel))
    }
    None cuGraphExecMemsetNodeSetParams(
        executable: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_MEMSET_NODE_PARAMS,
        context: CUcontext,
    ) |world| {
        expect_own(world, executable, context)?;
        let params = &*params;
        let memset = Memset {
            dst: params.dst,
            value: params.value,
            element: params.elementSize,
            width: params.width,
        };
        world.set_node(number(executable), number(node), Work::Memset(memset))
    }
    None cuGraphExecMemcpyNodeSetParams(
        executable: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_MEMCPY3D,
        context: CUcontext,
    ) |world| {
        expect_own(world, executable, context)?;
        let params = &*params;
        let copy = Copy {
            from: side(params.srcMemoryType, params.srcHost.addr(), params.srcDevice),
            to: side(params.dstMemoryType, params.dstHost.addr(), params.dstDevice),
            bytes: params.WidthInBytes,
        };
        world.check_copy(copy)?;
        world.set_node(number(executable), number(node), Work::Copy(copy))
    }
    None cuUserObjectCreate(
        out: *mut CUuserObject,
        data: *mut c_void,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        references: u32,
        _flags: u32,
    ) |world| {
        let function = function.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let object = UserObject::new(HostCall { function, data });
        let handle = world.handle();
        world.objects.insert(handle, (object, references));
        put(out, pointer(handle));
        Ok(())
    }
    Done cuUserObjectRelease(object: CUuserObject, count: u32) |world| {
        release(world, number(object), count)
    }
    None cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, count: u32, flags: u32)
    |world| {
        let object = number(object);
        let kept = Arc::clone(&world.objects.get(object)?.0);
        world.graphs.get_mut(number(graph))?.objects.push(kept);
        // The caller's references may be moved.
        match flags {
            1 => release(world, object, count),
            _ => Ok(()),
        }
    }
}

fn release(world: &mut World, object: u64, count: u32) -> Result {
    let references = &mut world.objects.get_mut(object)?.1;
    *references = references.checked_sub(count).ok_or_else(|| {
        misuse(
            CUresult::CUDA_ERROR_INVALID_VALUE,
            "more references than there are",
        )
    })?;
    if *references == 0 {
        world.objects.remove(object)?;
    }
    Ok(())
}

fn other_kind() -> Fault {
    misuse(CUresult::CUDA_ERROR_INVALID_VALUE, "a node of another kind")
}

fn expect_own(world: &World, executable: CUgraphExec, context: CUcontext) -> Result {
    let device = world.executables.get(number(executable))?.device;
    if crate::driver::world::context(device) == number(context) {
        return Ok(());
    }
    let what = "parameters in the context of another device";
    Err(misuse(CUresult::CUDA_ERROR_INVALID_CONTEXT, what))
}

fn memory_type(side: Side) -> CUmemorytype {
    match side {
        Side::Host(_) => CUmemorytype::CU_MEMORYTYPE_HOST,
        Side::Device(_) => CUmemorytype::CU_MEMORYTYPE_DEVICE,
    }
}

fn side(kind: CUmemorytype, host: usize, device: u64) -> Side {
    match kind {
        CUmemorytype::CU_MEMORYTYPE_HOST => Side::Host(host as u64),
        _ => Side::Device(device),
    }
}
