//! The symbols that every library of callables exports, for the Python package.

use super::entry::contain_panic;
use crate::error::{Error, Result};
use crate::registry;
#[cfg(feature = "_cuda")]
use crate::signature::Platform;
use std::ffi::{c_char, c_void};
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
    let len = error.len().min(size);
    if len > 0 {
        // SAFETY: the caller's promise.
        unsafe { ptr::copy_nonoverlapping(error.as_ptr(), text, len) };
    }
    // Not 0, whatever the words.
    error.len().max(1)
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
