//! Streams, events, captures.

use super::{number, put};
use crate::driver::call::driver;
use crate::driver::capture::Mode;
use crate::driver::memory::pointer;
use crate::driver::stream::{Event, Place};
use cudarc::driver::sys::{CUevent, CUgraph, CUgraphNode, CUresult, CUstream};
use std::ptr::null_mut;

driver! {
    None cuStreamCreate(out: *mut CUstream, flags: u32) |world| {
        if flags != 1 {
            // Nothing here waits for the default stream.
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED.into());
        }
        let device = world.current()?;
        put(out, pointer(world.create_stream(device)));
        Ok(())
    }
    Done cuStreamDestroy_v2(stream: CUstream) |world| { world.destroy_stream(number(stream)) }
    None cuStreamSynchronize(stream: CUstream) |world| { world.synchronize(number(stream)) }
    None cuStreamQuery(stream: CUstream) |world| { world.query(number(stream)) }
    None cuStreamWaitEvent(stream: CUstream, event: CUevent, _flags: u32) |world| {
        world.wait(number(stream), number(event))
    }
    None cuStreamIsCapturing(stream: CUstream, status: *mut u32) |world| {
        let capture = world.streams.get(number(stream))?.capture.as_ref();
        put(status, match capture {
            None => 0,
            Some(capture) => 1 + u32::from(world.captures.get(capture.id)?.is_broken),
        });
        Ok(())
    }
    None cuStreamGetCaptureInfo_v2(
        stream: CUstream,
        status: *mut u32,
        id: *mut u64,
        graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode,
        count: *mut usize,
    ) |world| {
        let state = world.streams.get_mut(number(stream))?;
        let Some(part) = state.capture.clone() else {
            put(status, 0);
            return Ok(());
        };
        state.shown = part.ends.iter().map(|&node| pointer(node)).collect();
        let (shown, len) = (state.shown.as_ptr(), state.shown.len());
        let capture = world.captures.get(part.id)?;
        if capture.is_broken {
            put(status, 2);
            put(graph, null_mut());
            return Ok(());
        }
        put(status, 1);
        put(id, part.id);
        put(graph, pointer(capture.graph));
        put(nodes, shown);
        put(count, len);
        Ok(())
    }
    None cuStreamBeginCapture_v2(stream: CUstream, mode: u32) |world| {
        world.begin_capture(number(stream), Mode::of(mode)?)
    }
    Done cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph) |world| {
        put(graph, null_mut());
        put(graph, pointer(world.end_capture(number(stream))?));
        Ok(())
    }
    None cuEventCreate(out: *mut CUevent, _flags: u32) |world| {
        let device = world.current()?;
        let handle = world.handle();
        world.events.insert(handle, Event { device, place: Place::Nowhere });
        put(out, pointer(handle));
        Ok(())
    }
    Done cuEventDestroy_v2(event: CUevent) |world| {
        world.destroy_event(number(event))
    }
    None cuEventRecord(event: CUevent, stream: CUstream) |world| {
        world.record(number(event), number(stream))
    }
    None cuEventSynchronize(event: CUevent) |world| { world.synchronize_event(number(event)) }
    None cuEventQuery(event: CUevent) |world| {
        match world.is_passed(number(event))? {
            true => Ok(()),
            false => Err(CUresult::CUDA_ERROR_NOT_READY.into()),
        }
    }
}
