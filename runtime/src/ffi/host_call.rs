//! The context of a running call on the host.

use super::api::Api;
use super::pool::Pool;
use super::sys;
use crate::error::{Error, Result};
use std::fmt;

/// XLA's API and context during one call.
///
/// A body gets its [`Context`](crate::cpu::Context) by reference and cannot keep it, so
/// this has no lifetime of its own.
pub(crate) struct HostCall {
    /// Looked at only when something is asked of it: most bodies ask nothing.
    table: *const sys::Api,
    ctx: *mut sys::ExecutionContext,
}

// SAFETY: XLA's API may be called from any thread while the call runs, and a `Context`
// is only reachable during the call.
unsafe impl Sync for HostCall {}

impl HostCall {
    /// # Safety
    /// `table` is not null, `ctx` is the context of the running call, and the value is not
    /// used after it.
    #[inline]
    pub(super) unsafe fn new(table: *const sys::Api, ctx: *mut sys::ExecutionContext) -> HostCall {
        HostCall { table, ctx }
    }

    fn api(&self) -> Result<Api<'_>> {
        // SAFETY: not null, and XLA's table lives for ever.
        unsafe { Api::new(self.table) }
    }

    /// # Panics
    /// If the host's API is too old, which INSTANTIATE has refused before.
    pub(crate) fn pool(&self) -> Pool<'_> {
        let api = self.api().unwrap_or_else(|error| panic!("{error}"));
        // SAFETY: the call runs as long as this is borrowed.
        unsafe { Pool::new(api, self.ctx) }
    }

    pub(crate) fn device_ordinal(&self) -> Result<usize> {
        // SAFETY: the call is running.
        let ordinal = unsafe { self.api()?.device_ordinal(self.ctx)? };
        usize::try_from(ordinal)
            .map_err(|_| Error::internal(format!("XLA gave the device ordinal {ordinal}")))
    }

    pub(crate) fn run_id(&self) -> Result<i64> {
        // SAFETY: the call is running.
        unsafe { self.api()?.run_id(self.ctx) }
    }
}

impl fmt::Debug for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostCall").finish_non_exhaustive()
    }
}
