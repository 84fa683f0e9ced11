//! Functions of the driver that `cudarc` declares for some CUDA versions only, though drivers have
//! them, under these names and with these types, from the version given here on.

use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUgraph, CUgraphNode, CUresult, CUstream, CUstreamCaptureStatus};
use std::sync::OnceLock;

macro_rules! symbols {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal ($($arg:ty),* $(,)?);)*) => {$(
        $(#[$doc])*
        pub(super) fn $name() -> Option<unsafe extern "C" fn($($arg),*) -> CUresult> {
            type Function = unsafe extern "C" fn($($arg),*) -> CUresult;
            static FUNCTION: OnceLock<Option<Function>> = OnceLock::new();
            // SAFETY: only called where the library is present; drivers keep the type of what
            // has a name.
            *FUNCTION.get_or_init(|| unsafe {
                let symbol = sys::culib().get::<Function>(concat!($symbol, "\0").as_bytes());
                symbol.ok().map(|function| *function)
            })
        }
    )*};
}

symbols! {
    /// The status of a stream's capture, its id, its graph, and the nodes that the next one will
    /// wait for; all but the status may be null. CUDA 11.3.
    capture_info = "cuStreamGetCaptureInfo_v2"(
        CUstream,
        *mut CUstreamCaptureStatus,
        *mut u64,
        *mut CUgraph,
        *mut *const CUgraphNode,
        *mut usize,
    );
    /// The edges of a graph; an error if any has data of its own. CUDA 10.
    graph_edges = "cuGraphGetEdges"(CUgraph, *mut CUgraphNode, *mut CUgraphNode, *mut usize);
}

/// What every supported driver has.
pub(super) fn present<F>(function: Option<F>) -> Result<F> {
    function.ok_or_else(|| {
        Error::failed_precondition(
            "the CUDA driver lacks a function that drivers for CUDA 12.0 have: install it anew",
        )
    })
}
