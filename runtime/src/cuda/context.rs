//! What a body can ask of the running call on a GPU.

use super::capture::Capture;
use super::device::Device;
use super::driver::failed;
use crate::error::{Error, Result};
use cudarc::driver::sys::CUstreamCaptureStatus;
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchArgs, result};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The running call on a GPU: its device and its stream.
#[derive(Debug)]
pub struct Context {
    device: &'static Device,
    stream: Arc<CudaStream>,
    /// Host memory that the graph being captured owns.
    owned: Mutex<Vec<Range<usize>>>,
    /// How many kernels of `module!` were queued.
    launches: AtomicUsize,
}

impl Context {
    pub(super) fn new(device: &'static Device, stream: Arc<CudaStream>) -> Context {
        Context {
            device,
            stream,
            owned: Mutex::default(),
            launches: AtomicUsize::new(0),
        }
    }

    /// The device's ordinal among this process's CUDA devices.
    pub fn device_ordinal(&self) -> usize {
        self.device.ordinal()
    }

    /// The device's primary context, which JAX uses as well.
    ///
    /// Its events are off: work that a body puts on streams of its own must be ordered by
    /// the body, and joined into [`Context::stream`] before it returns.
    pub fn device(&self) -> &Arc<CudaContext> {
        self.device.context()
    }

    /// The stream of the call, which all work must go to: XLA's, or while the call is captured
    /// into a graph of our own, one of the call site's, on which the graph then runs. Use it in
    /// this call only: nothing that was allocated on it, and no clone of it, may outlive the
    /// call, which fails otherwise. What a captured body points to beside its arrays must stay,
    /// unchanged, as long as the program.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Begins the launch of a function on the call's stream, as
    /// [`CudaStream::launch_builder`] does. Kernels of [`module!`](super::module!) are
    /// launched by their own methods.
    pub fn launch_builder<'a>(&'a self, function: &'a CudaFunction) -> LaunchArgs<'a> {
        self.stream.launch_builder(function)
    }

    /// Whether the call is being captured into a CUDA graph: work is then recorded, not run,
    /// and nothing can be waited for.
    ///
    /// # Errors
    /// If the driver does not tell.
    pub fn is_capturing(&self) -> Result<bool> {
        let status = self
            .stream
            .capture_status()
            .map_err(|error| failed("cannot ask for the capture status", error))?;
        Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// The capture under way on the call's stream, to be checked after the body.
    pub(crate) fn capture(&self) -> Result<Option<Capture>> {
        Capture::of(&self.stream)
    }

    /// Refuses copies that the body has added to a capture and that use host memory which the
    /// graph does not own.
    pub(crate) fn check_capture(&self, capture: &Capture) -> Result<()> {
        let launches = self.launches.load(Ordering::Relaxed);
        let owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        capture.check(&self.stream, launches, &owned)
    }

    /// Whether the function has kept the stream, which is there during the call only.
    pub(super) fn is_kept(&self) -> bool {
        Arc::strong_count(&self.stream) > 1
    }

    /// Refuses that.
    pub(crate) fn check_kept(&self) -> Result<()> {
        if !self.is_kept() {
            return Ok(());
        }
        Err(Error::failed_precondition(
            "the function has kept a clone of `cx.stream()`, or memory or a handle that was made \
             on it; they must not outlive the call: make what is kept on a stream of its own, \
             from `cx.device().new_stream()`",
        ))
    }

    #[cfg(feature = "cublas")]
    pub(super) fn handles(&self) -> &'static super::blas::Handles {
        self.device.handles()
    }

    /// Notes host memory that the graph being captured owns.
    pub(super) fn own(&self, range: Range<usize>) {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        owned.push(range);
    }

    /// Queues a copy on the call's stream.
    ///
    /// # Safety
    /// Both addresses are of device memory of at least this size, which stays until the
    /// stream has done the work.
    pub(crate) unsafe fn copy(&self, from: u64, to: u64, size: usize) -> Result<()> {
        // SAFETY: the caller's promise, and the stream is alive during the call.
        unsafe { result::memcpy_dtod_async(to, from, size, self.stream.cu_stream()) }
            .map_err(|error| failed("cannot copy an in-out to its result", error))
    }

    pub(super) fn count_launch(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn loading_device(&self) -> &'static Device {
        self.device
    }

    /// Waits for all work of the stream.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.stream
            .synchronize()
            .map_err(|error| failed("a kernel of this call, or of an earlier one, failed", error))
    }
}
