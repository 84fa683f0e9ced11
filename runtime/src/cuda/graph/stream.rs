//! A stream of our own, on which bodies are captured and their graphs run.

use super::raw::Graph;
use crate::cuda::device::Device;
use crate::cuda::driver::failed;
use crate::error::Result;
use cudarc::driver::DriverError;
use cudarc::driver::sys::{self, CUstream_flags, CUstreamCaptureMode};
use std::ptr;

/// The stream of a call site on a device.
///
/// A graph is launched here, between two events, and not on XLA's stream: other threads queue work
/// on that one at any moment, and drivers let some of it overtake what it must wait for when a
/// graph is launched on the same stream at the same time (`docs/reliability.md`).
#[derive(Debug)]
pub(super) struct OwnStream {
    device: &'static Device,
    stream: sys::CUstream,
    /// Behind what XLA's stream had when a call began.
    fork: Event,
    /// Behind the work of a call.
    join: Event,
    /// Somebody may use it for ever.
    is_kept: bool,
}

// SAFETY: a stream may be used by one thread after another.
unsafe impl Send for OwnStream {}

impl OwnStream {
    /// Makes one on a device, which is current.
    pub(super) fn new(device: &'static Device) -> Result<OwnStream> {
        let (fork, join) = (Event::new(device)?, Event::new(device)?);
        let mut stream = ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the driver writes one handle.
        unsafe { sys::cuStreamCreate(&mut stream, flags) }
            .result()
            .map_err(|error| failed("cannot make a stream for graphs", error))?;
        Ok(OwnStream {
            device,
            stream,
            fork,
            join,
            is_kept: false,
        })
    }

    /// Never destroys it: a body has kept a clone of its wrapper, and it was refused, but not taken
    /// from it.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.stream
    }

    /// Calls `work`, which puts work on this stream: that comes after what is on `stream` so far, and
    /// what `stream` gets later comes after that, also if `work` fails in the middle.
    ///
    /// # Safety
    /// `stream` is alive, of the same device, and not being captured, nor is this one.
    pub(super) unsafe fn within(
        &self,
        stream: sys::CUstream,
        work: impl FnOnce(sys::CUstream) -> Result<()>,
    ) -> Result<()> {
        // SAFETY: both streams are alive, by the caller's promise.
        unsafe {
            self.fork.record(stream)?;
            self.fork.wait(self.stream)?;
        }
        let result = work(self.stream);
        // SAFETY: as above. Where nothing can be queued behind it, it is waited for.
        let joined = unsafe {
            let marked = self.join.record(self.stream);
            let joined = marked.and_then(|()| self.join.wait(stream));
            joined.or_else(|error| {
                let waited = sys::cuStreamSynchronize(self.stream).result();
                waited.map_err(|_| error)
            })
        };
        result.and(joined)
    }

    /// Captures what `work` puts on the stream. If that fails or panics, the capture is over
    /// all the same and its graph is gone.
    pub(super) fn capture(&mut self, work: impl FnOnce() -> Result<()>) -> Result<Graph> {
        // Of this thread only: what other threads do meanwhile is their own affair.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive and not being captured: every capture of it ends here.
        unsafe { sys::cuStreamBeginCapture_v2(self.stream, mode) }
            .result()
            .map_err(|error| failed("cannot begin a capture", error))?;
        let open = OpenCapture(self.stream);
        work()?;
        open.end()
            .map_err(|error| failed("the call cannot be captured into a CUDA graph", error))
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let stream = self.stream;
        self.device.with_context(|| {
            // SAFETY: the stream is alive and used no more; what is on it is still done. What
            // went wrong does not matter.
            unsafe { sys::cuStreamDestroy_v2(stream) };
        });
    }
}

/// A capture that ends when dropped.
struct OpenCapture(sys::CUstream);

impl OpenCapture {
    fn end(self) -> std::result::Result<Graph, DriverError> {
        let stream = self.0;
        std::mem::forget(self);
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is alive and its capture was begun on this thread.
        let ended = unsafe { sys::cuStreamEndCapture(stream, &mut graph) }.result();
        // An error may be that of earlier work: then there is a graph all the same.
        let graph = Graph(graph);
        ended.map(|()| graph)
    }
}

impl Drop for OpenCapture {
    fn drop(&mut self) {
        let mut graph = ptr::null_mut();
        // SAFETY: as for `end`. A broken capture gives no graph.
        unsafe { sys::cuStreamEndCapture(self.0, &mut graph) };
        drop(Graph(graph));
    }
}

/// A mark in a stream, without a time.
#[derive(Debug)]
struct Event {
    device: &'static Device,
    event: sys::CUevent,
}

// SAFETY: an event may be used by one thread after another.
unsafe impl Send for Event {}

impl Event {
    /// Makes one on a device, which is current.
    fn new(device: &'static Device) -> Result<Event> {
        let mut event = ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the driver writes one handle.
        unsafe { sys::cuEventCreate(&mut event, flags) }
            .result()
            .map_err(|error| failed("cannot make an event", error))?;
        Ok(Event { device, event })
    }

    /// Puts the mark behind the stream's work so far.
    ///
    /// # Safety
    /// The stream is alive and not being captured.
    unsafe fn record(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { sys::cuEventRecord(self.event, stream) }
            .result()
            .map_err(|error| failed("cannot record an event", error))
    }

    /// Makes a stream's later work wait for the mark, if it was ever put.
    ///
    /// # Safety
    /// As for `record`.
    unsafe fn wait(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { sys::cuStreamWaitEvent(stream, self.event, 0) }
            .result()
            .map_err(|error| failed("cannot wait for an event", error))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let event = self.event;
        self.device.with_context(|| {
            // SAFETY: the event is alive and used no more; the driver keeps what is waited for.
            unsafe { sys::cuEventDestroy_v2(event) };
        });
    }
}
