//! The symbols that every library of callables exports, for the Python package.

use crate::registry;
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

/// How many call sites, one for each custom call of a live executable, there are.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_live_call_sites() -> u64 {
    super::state::live_call_sites()
}
