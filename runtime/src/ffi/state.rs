//! Call sites: what INSTANTIATE decodes and XLA keeps for the executable's life.

use super::api::Api;
use super::attrs::{Attr, Attrs};
use super::known::Known;
use super::sys;
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::plan::{BATCH, OUTPUT_DIMS};
use crate::signature::Callable;
use crate::state::Built;
use crate::statics::{self, Kept};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// One custom call of one executable, shared by all of its devices.
#[derive(Debug)]
pub(crate) struct CallSite {
    /// The static attributes that the frame does not hold in their final form.
    pub(crate) kept: Box<[Kept]>,
    pub(crate) batch: Batch,
    /// Whether the shapes of pure outputs were chosen for this call.
    pub(crate) outputs_given: bool,
    /// The shapes of its buffers, once they were checked.
    pub(super) known: OnceLock<Known>,
    /// The graphs of our own on each device. Before the states, for they may use those.
    #[cfg(feature = "_cuda")]
    pub(crate) graphs: crate::cuda::Slots,
    /// What `state = ...` has built.
    pub(crate) state: Option<Built>,
    /// The same on each device.
    #[cfg(feature = "_cuda")]
    pub(crate) device_states: Option<super::device_state::DeviceStates>,
    /// The devices that INITIALIZE has made ready.
    #[cfg(feature = "_cuda")]
    pub(crate) ready: crate::cuda::Ready,
}

impl CallSite {
    /// Decodes a frame's attributes, and checks all of them: that each has its place and
    /// a value of its type, on which EXECUTE relies.
    pub(crate) fn decode(callable: &Callable, attrs: Attrs<'_>) -> Result<CallSite> {
        let mut expected: Vec<_> = callable.statics().map(|(_, p)| p.name).collect();
        let mut kept = Vec::new();
        for (_, param) in callable.statics() {
            let ty = param.ty.value.expect("a static parameter has a value type");
            let attr = attrs.get(param.name)?.ok_or_else(|| {
                Error::invalid_argument(format!(
                    "the attribute `{}` is missing from the program",
                    param.name
                ))
            })?;
            let value = statics::decode(ty, attr).map_err(|error| {
                let code = error.code();
                Error::new(code, format!("parameter `{}`: {error}", param.name))
            })?;
            kept.extend(value);
        }
        let batch = match attrs.get(BATCH)? {
            None => Batch::default(),
            Some(Attr::Str(text)) => {
                expected.push(BATCH);
                Batch::parse(text, callable.operands().count())?
            }
            Some(other) => return Err(unexpected(BATCH, "a string", other)),
        };
        let outputs_given = match attrs.get(OUTPUT_DIMS)? {
            None => false,
            Some(Attr::Str("call")) => {
                expected.push(OUTPUT_DIMS);
                true
            }
            Some(other) => return Err(unexpected(OUTPUT_DIMS, "`call`", other)),
        };
        expected.sort_unstable();
        if !attrs.names().eq(expected.iter().copied()) {
            let extra = attrs.names().find(|name| !expected.contains(name));
            return Err(Error::invalid_argument(match extra {
                Some(extra) => format!("unexpected attribute `{extra}` in the program"),
                None => "the program's attributes are not sorted by name".to_owned(),
            }));
        }
        Ok(CallSite {
            kept: kept.into_boxed_slice(),
            batch,
            outputs_given,
            known: OnceLock::new(),
            state: None,
            #[cfg(feature = "_cuda")]
            device_states: None,
            #[cfg(feature = "_cuda")]
            ready: crate::cuda::Ready::default(),
            #[cfg(feature = "_cuda")]
            graphs: crate::cuda::Slots::default(),
        })
    }

    /// How many attributes of our own its calls have.
    pub(super) fn num_own_attrs(&self) -> usize {
        usize::from(self.batch.rank() > 0) + usize::from(self.outputs_given)
    }
}

fn unexpected(name: &str, expected: &str, got: Attr<'_>) -> Error {
    Error::invalid_argument(format!(
        "the attribute `{name}` is {} in the program, expected {expected}",
        got.describe()
    ))
}

static LIVE: AtomicU64 = AtomicU64::new(0);

/// How many call sites are alive in this library.
pub(crate) fn live_call_sites() -> u64 {
    LIVE.load(Ordering::Relaxed)
}

/// Hands a call site to XLA.
///
/// # Safety
/// `ctx` is the context of the running INSTANTIATE call.
pub(crate) unsafe fn set(
    api: Api<'_>,
    ctx: *mut sys::ExecutionContext,
    site: CallSite,
) -> Result<()> {
    let type_id = type_id(api)?;
    let state = Box::into_raw(Box::new(site));
    LIVE.fetch_add(1, Ordering::Relaxed);
    // SAFETY: `delete` takes a `Box<CallSite>` as a raw pointer, which `state` is.
    let result = unsafe { api.set_state(ctx, type_id, state.cast(), delete) };
    if result.is_err() {
        // SAFETY: XLA refused the state, so it is still ours, and `state` is the box.
        unsafe { delete(state.cast()) };
    }
    result
}

/// The call site of the running call.
///
/// # Safety
/// `ctx` is the context of the running call of a handler of this library. The state
/// lives as long as the executable, hence during the call.
pub(crate) unsafe fn get<'a>(
    api: Api<'a>,
    ctx: *mut sys::ExecutionContext,
) -> Result<&'a CallSite> {
    // SAFETY: the caller's promise.
    let state = unsafe { api.get_state(ctx, type_id(api)?)? };
    // SAFETY: the type id is of this library's call sites only, XLA compares it, and
    // the reference is shared: all that changes in a call site after INSTANTIATE is atomic.
    Ok(unsafe { &*state.cast::<CallSite>() })
}

unsafe extern "C" fn delete(state: *mut c_void) {
    LIVE.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: XLA calls this once with the pointer that `set` gave it.
    let site = unsafe { Box::from_raw(state.cast::<CallSite>()) };
    super::entry::contain_panic(move || drop(site));
}

static TYPE_INFO: sys::TypeInfo = sys::TypeInfo {
    struct_size: sys::TypeInfo::STRUCT_SIZE,
    extension_start: ptr::null_mut(),
    deleter: delete,
};

// SAFETY: the null pointer in it is never followed, and nothing writes to it.
unsafe impl Sync for sys::TypeInfo {}

/// Type ids are counters of one registry, and each platform's plugin has its own: an id for each,
/// with the address of the API table that it is found by.
static REGISTRIES: [OnceLock<(usize, i64)>; 8] = [const { OnceLock::new() }; 8];

fn type_id(api: Api<'_>) -> Result<i64> {
    for registry in &REGISTRIES {
        match registry.get() {
            None => break,
            Some(&(address, type_id)) if address == api.address() => return Ok(type_id),
            Some(_) => {}
        }
    }
    register_type(api)
}

#[cold]
fn register_type(api: Api<'_>) -> Result<i64> {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for registry in &REGISTRIES {
        match registry.get() {
            Some(&(address, type_id)) if address == api.address() => return Ok(type_id),
            Some(_) => {}
            None => {
                // Registries refuse a name twice, and every loaded library has this code:
                // the address of a static tells them apart.
                let name = format!("jax_callable::CallSite@{:p}", &raw const REGISTRIES);
                let type_id = api.register_type(&name, &TYPE_INFO)?;
                return Ok(registry.get_or_init(|| (api.address(), type_id)).1);
            }
        }
    }
    Err(Error::resource_exhausted(
        "more XLA registries in one process than the 8 that are supported",
    ))
}
