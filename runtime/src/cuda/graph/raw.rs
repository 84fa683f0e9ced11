//! The driver's objects for graphs, each destroyed when it is dropped.

use crate::cuda::device::Device;
use crate::cuda::driver::failed;
use crate::error::Result;
use cudarc::driver::DriverError;
use cudarc::driver::sys::{
    self, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo, CUresult, CUstream_flags,
    CUstreamCaptureMode,
};
use std::mem::MaybeUninit;
use std::ptr;

/// A stream of our own, on which bodies are captured. All that it ever runs is the allocation
/// of staging memory, and its end.
#[derive(Debug)]
pub(super) struct CaptureStream {
    device: &'static Device,
    stream: sys::CUstream,
}

// SAFETY: a stream may be used by one thread after another.
unsafe impl Send for CaptureStream {}

impl CaptureStream {
    /// Makes one on a device, which is current.
    pub(super) fn new(device: &'static Device) -> Result<CaptureStream> {
        let mut stream = ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the driver writes one handle.
        unsafe { sys::cuStreamCreate(&mut stream, flags) }
            .result()
            .map_err(|error| failed("cannot make a stream for captures", error))?;
        Ok(CaptureStream { device, stream })
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.stream
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

impl Drop for CaptureStream {
    fn drop(&mut self) {
        let stream = self.stream;
        self.device.with_context(|| {
            // SAFETY: the stream is alive and used no more; a free on it is still done. What
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

/// A graph, or none after a capture that broke.
#[derive(Debug)]
pub(super) struct Graph(sys::CUgraph);

// SAFETY: a graph may be used by one thread after another.
unsafe impl Send for Graph {}

impl Graph {
    pub(super) fn raw(&self) -> sys::CUgraph {
        self.0
    }

    /// Makes it executable.
    pub(super) fn instantiate(&self) -> Result<Executable> {
        let mut executable = ptr::null_mut();
        // SAFETY: the graph is alive.
        unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, self.0, 0) }
            .result()
            .map_err(|error| failed("cannot instantiate the CUDA graph of the call", error))?;
        Ok(Executable(executable))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the graph is alive and used no more. What was instantiated from it
            // stays.
            unsafe { sys::cuGraphDestroy(self.0) };
        }
    }
}

/// An executable graph. Dropped while it runs, the driver frees it afterwards.
#[derive(Debug)]
pub(crate) struct Executable(sys::CUgraphExec);

// SAFETY: an executable may be used by one thread after another.
unsafe impl Send for Executable {}

impl Executable {
    /// Gives it the parameters of another graph, for later launches. False if that has
    /// another topology, or nodes that cannot be updated: then it is as it was.
    pub(super) fn update(&mut self, graph: &Graph) -> Result<bool> {
        let mut info = MaybeUninit::<CUgraphExecUpdateResultInfo>::zeroed();
        // SAFETY: both are alive, and the driver writes the information.
        let (status, result) = unsafe {
            let status = sys::cuGraphExecUpdate_v2(self.0, graph.0, info.as_mut_ptr());
            // As a number: a newer driver may have other results.
            let result = &raw const (*info.as_ptr()).result;
            (status, result.cast::<u32>().read())
        };
        match status {
            CUresult::CUDA_SUCCESS => {
                Ok(result == CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS as u32)
            }
            CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE | CUresult::CUDA_ERROR_NOT_SUPPORTED => {
                Ok(false)
            }
            error => Err(failed(
                "cannot update the CUDA graph of the call",
                DriverError(error),
            )),
        }
    }

    pub(super) fn raw(&self) -> sys::CUgraphExec {
        self.0
    }

    /// Launches it.
    ///
    /// # Safety
    /// The stream is alive and of the graph's context; the addresses in the graph stay valid
    /// until the stream has done it.
    pub(super) unsafe fn launch(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { sys::cuGraphLaunch(self.0, stream) }
            .result()
            .map_err(|error| failed("cannot launch the CUDA graph of the call", error))
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: the executable is alive and used no more; one in flight is freed when done.
        unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

/// A mark in a stream, without a time.
#[derive(Debug)]
pub(super) struct Event(sys::CUevent);

// SAFETY: an event may be used by one thread after another.
unsafe impl Send for Event {}

impl Event {
    pub(super) fn new() -> Result<Event> {
        let mut event = ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the driver writes one handle.
        unsafe { sys::cuEventCreate(&mut event, flags) }
            .result()
            .map_err(|error| failed("cannot make an event", error))?;
        Ok(Event(event))
    }

    pub(super) fn raw(&self) -> sys::CUevent {
        self.0
    }

    /// Puts the mark behind the stream's work so far.
    ///
    /// # Safety
    /// The stream is alive and not being captured.
    pub(super) unsafe fn record(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { sys::cuEventRecord(self.0, stream) }
            .result()
            .map_err(|error| failed("cannot record an event", error))
    }

    /// Makes a stream's later work wait for the mark, if it was ever put.
    ///
    /// # Safety
    /// As for `record`.
    pub(super) unsafe fn wait(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { sys::cuStreamWaitEvent(stream, self.0, 0) }
            .result()
            .map_err(|error| failed("cannot wait for an event", error))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event is alive and used no more; the driver keeps what is waited for.
        unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}
