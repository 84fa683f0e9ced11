//! The handlers that XLA calls.

use super::api::{Api, create_error};
use super::attrs::Attrs;
use super::frame::Call;
use super::place::Place;
use super::plain;
use super::slot::Slot;
use super::values::Values;
use super::{state, sys};
use crate::absent;
use crate::error::{Code, Error, Result};
use crate::param::Definition;
use crate::registry::Registration;
use crate::signature::{Callable, GraphMode, Platform};
use crate::state::Built;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// The handler of a callable, for all stages. All that it does is out of line, for it is
/// compiled for each callable.
pub(crate) unsafe extern "C" fn handler<D: Definition>(
    frame: *mut sys::CallFrame,
) -> *mut sys::Error {
    // SAFETY: XLA calls its handlers with a valid frame; the definition's slot is a static.
    unsafe { handle(frame, D::SLOT) }
}

/// The handler of a callable's target on the other platform, where that has no function.
/// It is for any stage, and fails only in EXECUTE: a program may hold calls that it never
/// makes.
pub(crate) unsafe extern "C" fn absent<D: Definition>(
    frame: *mut sys::CallFrame,
) -> *mut sys::Error {
    // SAFETY: XLA calls its handlers with a valid frame; the definition's slot is a static.
    unsafe { handle_absent(frame, D::SLOT) }
}

/// For C, as the handlers are, which then need not care for panics: none gets out of it.
///
/// # Safety
/// `frame` is null or a frame that XLA calls a handler with, alive during the call; `slot` is a
/// static.
unsafe extern "C" fn handle(frame: *mut sys::CallFrame, slot: *const Slot) -> *mut sys::Error {
    // SAFETY: the caller's promise.
    let registration = unsafe { &*slot }.get();
    let values = Values::new();
    // SAFETY: the caller's promise; the values are those of this very frame.
    unsafe {
        if is_plain(frame, registration, &values) {
            run_plain(&*frame, registration, &values)
        } else {
            handle_any(frame, registration)
        }
    }
}

/// Whether this is an EXECUTE call on the host that the short cut lets pass. Nothing here, or there,
/// panics.
///
/// # Safety
/// As for `handle`.
#[inline(always)]
unsafe fn is_plain(
    frame: *mut sys::CallFrame,
    registration: &'static Registration,
    values: &Values,
) -> bool {
    // SAFETY: every version of the frame begins with its size.
    if frame.is_null() || unsafe { (*frame).struct_size } < sys::CALL_FRAME_SIZE {
        return false;
    }
    // SAFETY: the frame has all fields that this struct has, and nobody writes to them.
    let frame = unsafe { &*frame };
    // Extensions first: of the frame of a metadata query nothing else may be looked at.
    if !frame.extension_start.is_null()
        || frame.stage != sys::stage::EXECUTE
        || frame.api.is_null()
        || registration.plan.is_on_gpu()
    {
        return false;
    }
    // SAFETY: this is the frame of a running EXECUTE call.
    unsafe { plain::read(registration, frame, values) }
}

/// Runs the body alone. Out of line, so that what `is_plain` inlines has all registers for itself.
///
/// # Safety
/// `is_plain` was true for the frame.
#[inline(never)]
unsafe fn run_plain(
    frame: &sys::CallFrame,
    registration: &'static Registration,
    values: &Values,
) -> *mut sys::Error {
    let result = contain_panic(|| {
        // SAFETY: the frame was checked, and the values were set.
        let call = unsafe { Call::of_values(registration, frame, Place::HOST, values) };
        (registration.body)(&call)
    });
    // SAFETY: there is a table.
    unsafe { finish(frame.api, registration, result) }
}

/// Any other call.
///
/// # Safety
/// As for `handle`.
#[inline(never)]
unsafe fn handle_any(
    frame: *mut sys::CallFrame,
    registration: &'static Registration,
) -> *mut sys::Error {
    // SAFETY: the caller's promise.
    unsafe {
        contain(frame, registration, |frame| match frame.stage {
            sys::stage::EXECUTE => execute(frame, registration),
            sys::stage::INSTANTIATE => instantiate(frame, registration),
            sys::stage::INITIALIZE => initialize(frame, registration),
            // A stage that this handler was not registered for does nothing here.
            _ => Ok(()),
        })
    }
}

/// # Safety
/// As for `handle`.
#[cold]
unsafe extern "C" fn handle_absent(
    frame: *mut sys::CallFrame,
    slot: *const Slot,
) -> *mut sys::Error {
    // SAFETY: the caller's promise.
    let registration = unsafe { &*slot }.get();
    // SAFETY: the caller's promise.
    unsafe {
        contain(frame, registration, |frame| match frame.stage {
            sys::stage::EXECUTE => {
                let callable = registration.callable;
                Err(absent::error(callable, callable.platform().other()))
            }
            _ => Ok(()),
        })
    }
}

/// What all stages share: the metadata query, the checks of the frame, and errors.
///
/// # Safety
/// `frame` is null or a frame that XLA calls a handler with, alive during the call.
#[inline(always)]
unsafe fn contain(
    frame: *mut sys::CallFrame,
    registration: &'static Registration,
    work: impl FnOnce(&sys::CallFrame) -> Result<()>,
) -> *mut sys::Error {
    if frame.is_null() {
        fatal("XLA called a handler without a frame");
    }
    // SAFETY: every version of the frame begins with these two, and `api` follows. `ctx`
    // and all else are looked at only after the metadata query is excluded.
    let (size, extensions) = unsafe { ((*frame).struct_size, (*frame).extension_start) };
    // SAFETY: the list is XLA's, alive during the call.
    if unsafe { answer_metadata(extensions, registration) } {
        return ptr::null_mut();
    }
    // SAFETY: as above.
    let table = unsafe { (*frame).api };
    if table.is_null() {
        fatal("XLA called a handler without its API table");
    }
    let result = contain_panic(|| {
        if size < sys::CALL_FRAME_SIZE {
            return Err(frame_too_small(size));
        }
        // SAFETY: the frame has all fields that this struct has, and nobody writes to them.
        work(unsafe { &*frame })
    });
    // SAFETY: the table is not null.
    unsafe { finish(table, registration, result) }
}

/// # Safety
/// As for `create_error`.
#[inline(always)]
unsafe fn finish(
    table: *const sys::Api,
    registration: &'static Registration,
    result: Option<Result<()>>,
) -> *mut sys::Error {
    match result {
        Some(Ok(())) => ptr::null_mut(),
        // SAFETY: the caller's promise.
        failed => unsafe { report(table, registration, failed) },
    }
}

#[cold]
fn frame_too_small(size: usize) -> Error {
    Error::failed_precondition(format!(
        "XLA's call frame has {size} bytes, at least {} are needed: update JAX and jaxlib",
        sys::CALL_FRAME_SIZE
    ))
}

/// # Safety
/// As for `create_error`.
#[cold]
#[inline(never)]
unsafe fn report(
    table: *const sys::Api,
    registration: &'static Registration,
    failed: Option<Result<()>>,
) -> *mut sys::Error {
    // The error may hold any type of the author's, whose `Display` and `Drop` may panic.
    let description = contain_panic(move || match failed {
        Some(Err(error)) => (error.code(), error.to_string()),
        _ => FromPanic::from_panic("the value of the panic panicked itself".into()),
    });
    let (code, text) = description.unwrap_or((Code::Internal, "panicked".into()));
    let callable = registration.callable;
    let message = format!("{}.{}: {text}", callable.crate_name(), callable.name);
    // SAFETY: the caller's promise.
    unsafe { create_error(table, code, &message) }
}

/// What XLA is told of a callable, by each of its handlers.
fn traits(callable: &Callable) -> u32 {
    match (callable.platform(), callable.graph_mode) {
        (Platform::Cuda, GraphMode::Jax) => sys::COMMAND_BUFFER_COMPATIBLE,
        _ => 0,
    }
}

fn instantiate(frame: &sys::CallFrame, registration: &'static Registration) -> Result<()> {
    // SAFETY: `contain` checked that there is a table.
    let api = unsafe { Api::new(frame.api)? };
    // SAFETY: the frame is XLA's, alive and unchanged during the call.
    let attrs = unsafe { Attrs::new(&frame.attrs) };
    let mut site = state::CallSite::decode(registration.callable, attrs)?;
    if registration.plan.has_state {
        // SAFETY: this is the frame that the site was decoded from.
        let call = unsafe { Call::for_state(registration, frame, Place::HOST, &site) };
        site.state = Some(build_state(call)?);
    }
    #[cfg(feature = "_cuda")]
    if registration.plan.has_device_state {
        site.device_states = Some(super::device_state::DeviceStates::new());
    }
    // SAFETY: this is the running INSTANTIATE call's context.
    unsafe { state::set(api, frame.ctx, site) }
}

/// Builds the state of a call site.
pub(super) fn build_state(mut call: Call<'_>) -> Result<Built> {
    let Some(build) = call.registration.build_state else {
        return Err(Error::internal("the callable has no state"));
    };
    let values = Values::new();
    call.values = &values;
    let result = call.read_numbers(&values).and_then(|()| build(&call));
    result.map_err(state_error)
}

pub(super) fn state_error(error: Error) -> Error {
    Error::new(error.code(), format!("cannot build its state: {error}"))
}

#[cfg_attr(
    not(feature = "_cuda"),
    expect(unused_variables, reason = "only devices are")
)]
fn initialize(frame: &sys::CallFrame, registration: &'static Registration) -> Result<()> {
    #[cfg(feature = "_cuda")]
    if registration.plan.is_on_gpu() {
        // SAFETY: this is the running INITIALIZE call's frame, which has a table.
        unsafe { super::cuda_call::initialize(frame, registration)? };
    }
    Ok(())
}

fn execute(frame: &sys::CallFrame, registration: &'static Registration) -> Result<()> {
    #[cfg(feature = "_cuda")]
    if registration.plan.is_on_gpu() {
        return execute_on_gpu(frame, registration);
    }
    // SAFETY: this is the frame of the running EXECUTE call of a callable on the host.
    unsafe { check_and_run(registration, frame, Place::HOST) }
}

#[cfg(feature = "_cuda")]
fn execute_on_gpu(frame: &sys::CallFrame, registration: &'static Registration) -> Result<()> {
    if registration.callable.graph_mode.is_own() {
        // SAFETY: this is the running EXECUTE call's frame, which has a table.
        return unsafe { super::graph_call::execute(frame, registration) };
    }
    let values = Values::new();
    // SAFETY: this is the running EXECUTE call's frame, which has a table; the place is that
    // of its platform.
    unsafe {
        super::cuda_call::execute(frame, registration.callable, |place| {
            if plain::read(registration, frame, &values) {
                let call = Call::of_values(registration, frame, place, &values);
                return (registration.body)(&call);
            }
            check_and_run(registration, frame, place)
        })
    }
}

/// # Safety
/// This is the frame of the running EXECUTE call of the callable, and `place` that of its
/// platform.
#[inline(never)]
pub(super) unsafe fn check_and_run<'a>(
    registration: &'static Registration,
    frame: &'a sys::CallFrame,
    place: Place<'a>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let mut call = unsafe { Call::new(registration, frame, place) };
    call.check()?;
    call.run()
}

/// Answers the metadata query, if that is what the frame is. On older hosts `api` is null
/// in it, and `ctx` always is.
///
/// # Safety
/// `extension` is null or heads a list of XLA's extensions.
unsafe fn answer_metadata(
    mut extension: *mut sys::ExtensionBase,
    registration: &'static Registration,
) -> bool {
    while !extension.is_null() {
        // SAFETY: the list is XLA's; unknown entries are passed over.
        let base = unsafe { *extension };
        if base.ty == sys::EXTENSION_METADATA {
            // SAFETY: an extension of this type is a metadata extension.
            let metadata = unsafe { (*extension.cast::<sys::MetadataExtension>()).metadata };
            // SAFETY: the metadata is XLA's, to be written by the handler.
            if !metadata.is_null() && unsafe { (*metadata).struct_size } >= sys::METADATA_SIZE {
                // The oldest version that has all that is used: hosts refuse newer ones
                // than their own, and accept older ones.
                // SAFETY: every version of the metadata has these fields.
                unsafe {
                    (*metadata).api_version.major_version = 0;
                    (*metadata).api_version.minor_version = 1;
                    (*metadata).traits = traits(registration.callable);
                }
            }
            return true;
        }
        extension = base.next;
    }
    false
}

/// Runs `work` and turns a panic into an error. None if the panic's value panics itself
/// when dropped.
pub(super) fn contain_panic<T: FromPanic>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => Some(value),
        Err(payload) => {
            let message = panic_message(payload.as_ref());
            let dropped = catch_unwind(AssertUnwindSafe(move || drop(payload)));
            match dropped {
                Ok(()) => Some(T::from_panic(message)),
                Err(second) => {
                    // Its drop may panic again, without end.
                    std::mem::forget(second);
                    None
                }
            }
        }
    }
}

pub(super) trait FromPanic {
    fn from_panic(message: String) -> Self;
}

impl FromPanic for Result<()> {
    fn from_panic(message: String) -> Self {
        Err(Error::internal(format!("panicked: {message}")))
    }
}

impl FromPanic for (Code, String) {
    fn from_panic(message: String) -> Self {
        (Code::Internal, format!("panicked: {message}"))
    }
}

impl FromPanic for () {
    /// The panic hook has told of it.
    fn from_panic(_: String) {}
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "with a value that is not text".to_owned()
    }
}

/// Ends the process where no error can be reported and success would be a lie.
#[cold]
pub(crate) fn fatal(message: &str) -> ! {
    eprintln!("jax-callable: {message}");
    std::process::abort();
}
