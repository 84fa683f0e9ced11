//! Calls on a GPU: the device and stream of a frame, and what surrounds the body.

use super::api::Api;
use super::entry::{build_state, state_error};
use super::frame::Call;
use super::place::Place;
use super::{state, sys};
use crate::cuda::{self, Device};
use crate::error::{Error, Result};
use crate::registry::Registration;
use crate::signature::{Callable, GraphMode};
use std::sync::OnceLock;

/// Makes the device ready for EXECUTE, which may be captured.
///
/// # Safety
/// `frame` is the frame of a running INITIALIZE call, with an API table.
pub(super) unsafe fn initialize(
    frame: &sys::CallFrame,
    registration: &'static Registration,
) -> Result<()> {
    let callable = registration.callable;
    // SAFETY: the caller's promise.
    let api = unsafe { Api::new(frame.api)? };
    // SAFETY: this is the running call's context.
    let (site, ordinal) = unsafe { (state::get(api, frame.ctx)?, api.device_ordinal(frame.ctx)?) };
    if usize::try_from(ordinal).is_ok_and(|ordinal| site.ready.is_on(ordinal)) {
        return Ok(());
    }
    let device = Device::current(ordinal)?;
    cuda::load(callable, device)?;
    if callable.graph_mode.is_own() {
        let target = cuda::target_of(callable);
        site.graphs.prepare(device, &target, callable.graph_mode)?;
    }
    if let Some(states) = &site.device_states {
        states.build(device.ordinal(), || {
            // SAFETY: the stream is XLA's for this device, and the context is used during the
            // call. The frame has the attributes that the site was decoded from.
            let context = unsafe { device.on_stream(api.stream(frame.ctx)?) };
            let place = Place::Cuda(&context);
            // SAFETY: as above.
            let call = unsafe { Call::for_state(registration, frame, place, site) };
            let state = build_state(call)?;
            context.check_kept().map_err(state_error)?;
            // It is used on other streams as well.
            context.synchronize()?;
            Ok(state)
        })?;
    }
    site.ready.set(device.ordinal());
    Ok(())
}

/// Calls `run` with the place of a call.
///
/// # Safety
/// `frame` is the frame of a running EXECUTE call, with an API table.
#[inline]
pub(super) unsafe fn execute(
    frame: &sys::CallFrame,
    callable: &Callable,
    run: impl FnOnce(Place<'_>) -> Result<()>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let api = unsafe { Api::new(frame.api)? };
    // SAFETY: this is the running call's context.
    let (ordinal, stream) = unsafe { (api.device_ordinal(frame.ctx)?, api.stream(frame.ctx)?) };
    let device = Device::current(ordinal)?;
    // SAFETY: the stream is XLA's for this device, whose primary context XLA uses, and the
    // context is used during the call.
    let context = unsafe { device.on_stream(stream) };
    let capture = match callable.graph_mode {
        GraphMode::Jax => context.capture()?,
        _ => None,
    };
    let result = run(Place::Cuda(&context));
    match &capture {
        Some(capture) => result
            .and_then(|()| context.check_capture(capture))
            .map_err(in_capture)?,
        None => {
            result?;
            if waits_for_each_call() {
                context.synchronize()?;
            }
        }
    }
    context.check_kept()
}

fn in_capture(error: Error) -> Error {
    Error::new(
        error.code(),
        format!(
            "{error} (while XLA captured the call into a CUDA graph; a body that must wait, \
             allocate or load there needs graph_mode = None)"
        ),
    )
}

/// Whether the environment has `JAX_CALLABLE_SYNC=1`.
pub(super) fn waits_for_each_call() -> bool {
    static WAITS: OnceLock<bool> = OnceLock::new();
    *WAITS.get_or_init(|| std::env::var_os("JAX_CALLABLE_SYNC").is_some_and(|value| value == "1"))
}
