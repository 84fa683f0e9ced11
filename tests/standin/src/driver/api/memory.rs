//! Memory: allocation, copies, memsets.

use super::{number, put};
use crate::driver::call::driver;
use crate::driver::memory::State;
use crate::driver::stream::StreamCapture;
use crate::driver::work::{Copy, GraphMemory, Memset, Side, Work};
use crate::driver::world::World;
use crate::driver::{Result, misuse};
use cudarc::driver::sys::{CUpointer_attribute, CUresult, CUstream};
use std::ffi::c_void;
use std::sync::Arc;

driver! {
    None cuMemAlloc_v2(out: *mut u64, bytes: usize) |world| {
        let device = world.current()?;
        world.unless_restricted()?;
        put(out, world.memory.allocate(device, bytes, State::Live)?);
        Ok(())
    }
    Done cuMemFree_v2(address: u64) |world| {
        world.current()?;
        world.unless_restricted()?;
        world.finish_all();
        world.memory.free(address)
    }
    None cuMemAllocAsync(out: *mut u64, bytes: usize, stream: CUstream) |world| {
        let stream = number(stream);
        let state = world.streams.get(stream)?;
        let (device, capture) = (state.device, state.capture.clone());
        if let Some(StreamCapture { id, .. }) = capture {
            world.active_graph(id)?;
        }
        let address = world.memory.allocate(device, bytes, State::Reserved)?;
        let work = match capture {
            Some(_) => Work::AllocateInGraph(Arc::new(GraphMemory(address))),
            None => Work::Allocate(address),
        };
        world.enqueue(stream, work)?;
        put(out, address);
        Ok(())
    }
    Done cuMemFreeAsync(address: u64, stream: CUstream) |world| {
        let stream = number(stream);
        let work = match graph_memory(world, stream, address)? {
            Some(memory) => Work::FreeInGraph(memory),
            None if world.memory.is_allocation(address) => Work::Free(address),
            None => {
                let what = format!("{address:#x} is freed, which is no allocation");
                return Err(misuse(CUresult::CUDA_ERROR_INVALID_VALUE, what));
            }
        };
        world.enqueue(stream, work)
    }
    None cuPointerGetAttribute(out: *mut c_void, attribute: u32, address: u64) |world| {
        let kind = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE as u32;
        match world.memory.device_of(address) {
            Some(_) if attribute == kind => {
                // Device memory.
                put(out.cast(), 2_u32);
                Ok(())
            }
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE.into()),
        }
    }
    None cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: CUstream) |world| {
        copy(world, (Side::Device(from), Side::Device(to), bytes), stream)
    }
    None cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: CUstream)
    |world| {
        let stream_number = number(stream);
        let from = from.expose_provenance() as u64;
        if world.streams.get(stream_number)?.capture.is_none() {
            // Pageable memory is read before the call returns: here, by waiting.
            copy(world, (Side::Host(from), Side::Device(to), bytes), stream)?;
            world.finish(stream_number);
            return Ok(());
        }
        copy(world, (Side::Host(from), Side::Device(to), bytes), stream)
    }
    None cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: CUstream)
    |world| {
        let stream_number = number(stream);
        let to = to.expose_provenance() as u64;
        copy(world, (Side::Device(from), Side::Host(to), bytes), stream)?;
        if world.streams.get(stream_number)?.capture.is_none() {
            world.finish(stream_number);
        }
        Ok(())
    }
    None cuMemsetD8Async(dst: u64, value: u8, count: usize, stream: CUstream) |world| {
        let memset = Memset { dst, value: value.into(), element: 1, width: count };
        world.enqueue(number(stream), Work::Memset(memset))
    }
    None cuMemsetD32Async(dst: u64, value: u32, count: usize, stream: CUstream) |world| {
        let memset = Memset { dst, value, element: 4, width: count };
        world.enqueue(number(stream), Work::Memset(memset))
    }
}

fn copy(world: &mut World, (from, to, bytes): (Side, Side, usize), stream: CUstream) -> Result {
    let copy = Copy { from, to, bytes };
    if let Err(fault) = world.check_copy(copy) {
        // A call that fails so breaks a capture that it was to be part of.
        if let Some(capture) = world.streams.get(number(stream))?.capture.clone() {
            world.invalidate(capture.id);
        }
        return Err(fault);
    }
    world.enqueue(number(stream), Work::Copy(copy))
}

/// The memory at an address, if the graph that a stream is captured into allocates it.
fn graph_memory(world: &World, stream: u64, address: u64) -> Result<Option<Arc<GraphMemory>>> {
    let Some(capture) = &world.streams.get(stream)?.capture else {
        return Ok(None);
    };
    let graph = world.graphs.get(world.active_graph(capture.id)?)?;
    for &node in &graph.nodes {
        if let Work::AllocateInGraph(memory) = &world.nodes.get(node)?.work
            && memory.0 == address
        {
            return Ok(Some(Arc::clone(memory)));
        }
    }
    Ok(None)
}
