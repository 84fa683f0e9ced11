//! Calls on a GPU: the device and stream of a frame, and what surrounds the body.

use super::api::Api;
use super::entry::{BuildState, build_state};
use super::frame::Call;
use super::place::Place;
use super::{state, sys};
use crate::cuda::{self, Device};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::signature::{Callable, GraphMode};
use std::sync::OnceLock;

/// Refuses what is not there yet, when the program is compiled.
pub(super) fn check_mode(callable: &Callable) -> Result<()> {
    match callable.graph_mode {
        GraphMode::None | GraphMode::Jax => Ok(()),
        mode => Err(Error::unimplemented(format!(
            "graph_mode = {} is not implemented in this version of jax-callable: use Jax, in \
             which XLA captures CUDA graphs, or None",
            mode.name()
        ))),
    }
}

/// Makes the device ready for EXECUTE, which may be captured.
///
/// # Safety
/// `frame` is the frame of a running INITIALIZE call, with an API table.
pub(super) unsafe fn initialize(
    frame: &sys::CallFrame,
    callable: &'static Callable,
    plan: &'static Plan,
    build: BuildState,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let api = unsafe { Api::new(frame.api)? };
    // SAFETY: this is the running call's context.
    let (site, ordinal) = unsafe { (state::get(api, frame.ctx)?, api.device_ordinal(frame.ctx)?) };
    if usize::try_from(ordinal).is_ok_and(|ordinal| site.ready.is_on(ordinal)) {
        return Ok(());
    }
    let device = Device::current(ordinal)?;
    cuda::load(callable, device)?;
    if let Some(states) = &site.device_states {
        states.build(device.ordinal(), || {
            // SAFETY: the stream is XLA's for this device, and the context is used during the
            // call. The frame has the attributes that the site was decoded from.
            let context = unsafe { device.on_stream(api.stream(frame.ctx)?) };
            let place = Place::Cuda(&context);
            // SAFETY: as above.
            let call = unsafe { Call::for_state(callable, plan, frame, place, site) };
            let state = build_state(&call, build)?;
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
    let result = run(Place::Cuda(&context));
    if let Err(error) = result {
        return Err(match context.is_capturing() {
            Ok(false) => error,
            // A capture that broke is still one.
            _ => Error::new(
                error.code(),
                format!(
                    "{error} (while XLA captured the call into a CUDA graph; a body that must \
                     wait, allocate or load there needs graph_mode = None)"
                ),
            ),
        });
    }
    if waits_for_each_call() && !context.is_capturing()? {
        context.synchronize()?;
    }
    Ok(())
}

/// Whether the environment has `JAX_CALLABLE_SYNC=1`.
fn waits_for_each_call() -> bool {
    static WAITS: OnceLock<bool> = OnceLock::new();
    *WAITS.get_or_init(|| std::env::var_os("JAX_CALLABLE_SYNC").is_some_and(|value| value == "1"))
}
