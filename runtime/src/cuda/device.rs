//! Devices: one primary context for each, kept to the end of the process.

use super::Context;
use super::driver::{self, failed};
use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUresult, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, result};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How many devices a process may have.
pub(crate) const MAX_DEVICES: usize = 64;

/// A device of this process.
#[derive(Debug)]
pub(crate) struct Device {
    ordinal: usize,
    context: Arc<CudaContext>,
    #[cfg(feature = "cublas")]
    handles: super::blas::Handles,
}

static DEVICES: [OnceLock<Device>; MAX_DEVICES] = [const { OnceLock::new() }; MAX_DEVICES];

impl Device {
    /// The device of an ordinal, current on this thread.
    pub(crate) fn current(ordinal: i32) -> Result<&'static Device> {
        let slot = usize::try_from(ordinal).ok().and_then(|i| DEVICES.get(i));
        let slot = slot.ok_or_else(|| {
            Error::internal(format!(
                "XLA gave the device ordinal {ordinal}; 0 to {} are supported",
                MAX_DEVICES - 1
            ))
        })?;
        let device = match slot.get() {
            Some(device) => device,
            None => Device::open(slot, ordinal as usize)?,
        };
        device.make_current()?;
        Ok(device)
    }

    /// Makes it current on this thread.
    pub(super) fn make_current(&self) -> Result<()> {
        // What an earlier drop left behind is not this call's error.
        let _ = self.context.check_err();
        let bound = self.context.bind_to_thread();
        bound.map_err(|error| failed(format!("cannot use CUDA device {}", self.ordinal), error))
    }

    /// Calls `work` with the device of an ordinal current, and then leaves this thread's
    /// context as it was: the thread is the user's.
    pub(super) fn with<T>(
        ordinal: i32,
        work: impl FnOnce(&'static Device) -> Result<T>,
    ) -> Result<T> {
        driver::require()?;
        // Fails before CUDA is initialised, when there is no context.
        let before = result::ctx::get_current().ok().flatten();
        let result = Device::current(ordinal).and_then(work);
        // SAFETY: this context was current just now, or it is null, for none.
        let restored = unsafe { result::ctx::set_current(before.unwrap_or(ptr::null_mut())) };
        let value = result?;
        restored.map_err(|error| failed("cannot restore this thread's CUDA context", error))?;
        Ok(value)
    }

    /// Does something with this device current, and gives the thread back the context that it
    /// had: XLA remembers which one it has made current. A capture on this thread, of a body that
    /// clears graphs, is left alone too. This is for what is dropped; nobody is told of errors.
    pub(super) fn with_context(&self, work: impl FnOnce()) {
        let own = Some(self.context.cu_ctx());
        // Unless the driver tells which context to give back, it stays: what ends names its own.
        let before = result::ctx::get_current()
            .ok()
            .filter(|&before| before != own);
        if before.is_some() {
            // SAFETY: the context is kept to the end of the process. A driver that ends the process
            // refuses, and has freed everything itself.
            let _ = unsafe { result::ctx::set_current(self.context.cu_ctx()) };
        }
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: it changes this thread's mode only, and gives the one before.
        let mut exchange = || unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) };
        let is_relaxed = exchange() == CUresult::CUDA_SUCCESS;
        work();
        if is_relaxed {
            exchange();
        }
        if let Some(before) = before {
            let before = before.unwrap_or(ptr::null_mut());
            // SAFETY: it was current on this thread, or none was.
            let _ = unsafe { result::ctx::set_current(before) };
        }
    }

    /// As [`Device::with_context`], by ordinal. Without the device, `work` is just called.
    pub(crate) fn drop_on(ordinal: usize, work: impl FnOnce()) {
        match DEVICES.get(ordinal).and_then(OnceLock::get) {
            Some(device) => device.with_context(work),
            None => work(),
        }
    }

    #[cold]
    fn open(slot: &'static OnceLock<Device>, ordinal: usize) -> Result<&'static Device> {
        driver::require()?;
        static LOCK: Mutex<()> = Mutex::new(());
        let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = slot.get() {
            return Ok(device);
        }
        // The primary context, which is XLA's too.
        let context = CudaContext::new(ordinal)
            .map_err(|error| failed(format!("cannot open CUDA device {ordinal}"), error))?;
        // SAFETY: all work of a call is on one stream, so that nothing hangs on cudarc's
        // events, which XLA's captures would refuse; streams that a body makes itself are
        // its own to order, as `Context::stream` says.
        unsafe { context.disable_event_tracking() };
        Ok(slot.get_or_init(|| Device {
            ordinal,
            context,
            #[cfg(feature = "cublas")]
            handles: super::blas::Handles::default(),
        }))
    }

    pub(crate) fn ordinal(&self) -> usize {
        self.ordinal
    }

    pub(super) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    #[cfg(feature = "cublas")]
    pub(super) fn handles(&self) -> &super::blas::Handles {
        &self.handles
    }

    /// What a body sees of a call on this device.
    ///
    /// # Safety
    /// `stream` is a stream of this device's primary context, which outlives every use of
    /// the wrapper.
    pub(crate) unsafe fn on_stream(&'static self, stream: *mut c_void) -> Context {
        let stream: sys::CUstream = stream.cast();
        // SAFETY: the caller's promise. The wrapper never destroys the stream.
        Context::new(self, unsafe { self.context.wrap_borrowed_stream(stream) })
    }
}
