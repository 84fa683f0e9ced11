//! What the library exports of the driver's interface: as much as the runtime and the tests call.

mod device;
mod graph;
mod memory;
mod module;
mod stream;

/// Writes to where a caller wants a result.
///
/// # Safety
/// `to` is null or a place for it.
unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { to.write(value) };
    }
}

/// The number of a handle.
fn number<T>(handle: *mut T) -> u64 {
    handle.addr() as u64
}
