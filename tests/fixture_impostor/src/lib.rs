//! Exports what a library of callables exports, and answers what the environment says: for
//! libraries of other versions and damaged ones.

use std::ffi::{CString, c_char, c_void};
use std::ptr;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// `IMPOSTOR_ABI`.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_abi_version() -> u32 {
    variable("IMPOSTOR_ABI").parse().unwrap_or(0)
}

/// `IMPOSTOR_MANIFEST`.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_manifest() -> *const c_char {
    // The caller may keep it for ever.
    CString::new(variable("IMPOSTOR_MANIFEST")).map_or(ptr::null(), |text| text.into_raw())
}

/// No handler.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_handler(_index: u32, _stage: u32) -> *const c_void {
    ptr::null()
}

/// Nothing to load.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_preload(_: u32, _: i32, _: *mut u8, _: usize) -> usize {
    0
}

/// No graphs.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_graphs(_: u32, _: *mut u8, _: usize) -> usize {
    0
}

/// None to be limited.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_set_graph_cache_max(_: u32, _: i64) -> u32 {
    0
}

/// None to be given up.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_clear_graphs(_: u32) -> u32 {
    0
}

/// None.
#[unsafe(no_mangle)]
extern "C" fn jax_callable_live_call_sites() -> u64 {
    0
}
