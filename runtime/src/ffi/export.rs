//! The symbols that every library of callables exports, for the Python package.

use super::entry::contain_panic;
use crate::error::{Error, Result};
use crate::registry;
#[cfg(feature = "_cuda")]
use crate::signature::Platform;
use std::ffi::{c_char, c_void};
use std::panic::catch_unwind;
use std::ptr;

/// The version of these symbols and of the manifest.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_abi_version() -> u32 {
    registry::ABI_VERSION
}

/// The manifest: NUL-terminated JSON that lives for ever.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_manifest() -> *const c_char {
    registry::library().manifest.as_ptr()
}

/// The handler of a stage, numbered as in the manifest and in XLA; null if there is none.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_handler(index: u32, stage: u32) -> *const c_void {
    let handlers = registry::library().handlers.get(index as usize);
    let handler = handlers.and_then(|handlers| handlers.stage(stage as i32));
    handler.map_or(ptr::null(), |handler| handler as *const c_void)
}

/// Loads the modules of a callable, numbered as in the manifest, on a CUDA device.
///
/// Returns 0, or the size of the text that says why not, of which `text` gets what fits.
///
/// # Safety
/// `text` points to `size` bytes, or `size` is 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn jax_callable_preload(
    index: u32,
    ordinal: i32,
    text: *mut u8,
    size: usize,
) -> usize {
    let result = contain_panic(|| preload(index, ordinal));
    let error = match result.unwrap_or_else(|| Err(Error::internal("panicked"))) {
        Ok(()) => return 0,
        Err(error) => error.to_string(),
    };
    // SAFETY: the caller's promise.
    unsafe { give(&error, text, size) };
    // Not 0, whatever the words.
    error.len().max(1)
}

/// # Safety
/// `to` points to `size` bytes, or `size` is 0.
unsafe fn give(text: &str, to: *mut u8, size: usize) {
    let len = text.len().min(size);
    if len > 0 {
        // SAFETY: the caller's promise.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), to, len) };
    }
}

/// The graphs of a callable, numbered as in the manifest, as JSON: `max`, null for no limit, and
/// `statistics`.
///
/// Returns the size of the text, of which `text` gets what fits, or 0 if there is no such
/// callable for CUDA.
///
/// # Safety
/// `text` points to `size` bytes, or `size` is 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn jax_callable_graphs(index: u32, text: *mut u8, size: usize) -> usize {
    let Ok(Some(json)) = catch_unwind(|| graphs::json(index)) else {
        return 0;
    };
    // SAFETY: the caller's promise.
    unsafe { give(&json, text, size) };
    json.len()
}

/// Sets how many graphs a callable keeps at most: -1 for no limit, -2 for what it says itself.
/// The number `u32::MAX` stands for the default of this library. 0 if there is no such callable.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_set_graph_cache_max(index: u32, max: i64) -> u32 {
    u32::from(catch_unwind(|| graphs::set_max(index, max)).unwrap_or(false))
}

/// Gives up all graphs of a callable. 0 if there is no such callable.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_clear_graphs(index: u32) -> u32 {
    u32::from(catch_unwind(|| graphs::clear(index)).unwrap_or(false))
}

#[cfg(feature = "_cuda")]
mod graphs {
    use crate::cuda::graphs::{Graphs, set_default_max};
    use crate::manifest;
    use crate::signature::GraphCacheMax;
    use serde_core::ser::{Serialize, SerializeMap, Serializer};
    use std::collections::BTreeMap;

    pub(super) fn json(index: u32) -> Option<String> {
        Graphs::at(index).map(|graphs| manifest::json(&Described(graphs)))
    }

    struct Described(Graphs);

    impl Serialize for Described {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            let statistics: BTreeMap<_, _> = self.0.statistics().iter().collect();
            let mut map = to.serialize_map(None)?;
            map.serialize_entry("max", &self.0.max())?;
            map.serialize_entry("statistics", &statistics)?;
            map.end()
        }
    }

    pub(super) fn set_max(index: u32, max: i64) -> bool {
        if index == u32::MAX {
            set_default_max(u64::try_from(max).ok());
            return true;
        }
        let max = match max {
            -2 => GraphCacheMax::Default,
            max => u64::try_from(max).map_or(GraphCacheMax::Unlimited, GraphCacheMax::Limit),
        };
        Graphs::at(index)
            .inspect(|graphs| graphs.set_max(max))
            .is_some()
    }

    pub(super) fn clear(index: u32) -> bool {
        Graphs::at(index).inspect(Graphs::clear).is_some()
    }
}

#[cfg(not(feature = "_cuda"))]
mod graphs {
    pub(super) fn json(_: u32) -> Option<String> {
        None
    }

    pub(super) fn set_max(index: u32, _: i64) -> bool {
        index == u32::MAX
    }

    pub(super) fn clear(_: u32) -> bool {
        false
    }
}

fn preload(index: u32, ordinal: i32) -> Result<()> {
    let callables = &registry::library().callables;
    let callable = callables.get(index as usize).copied();
    #[cfg(feature = "_cuda")]
    if let Some(callable) = callable.filter(|callable| callable.platform() == Platform::Cuda) {
        return crate::cuda::preload(callable, ordinal);
    }
    Err(Error::invalid_argument(format!(
        "number {index} ({}) is no callable for CUDA, on device {ordinal} or any other",
        callable.map_or("none", |callable| callable.name)
    )))
}

/// How many call sites, one for each custom call of a live executable, there are.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_live_call_sites() -> u64 {
    super::state::live_call_sites()
}
