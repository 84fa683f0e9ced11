//! The driver's objects for graphs, each destroyed when it is dropped.

use crate::cuda::driver::failed;
use crate::error::Result;
use cudarc::driver::DriverError;
use cudarc::driver::sys::{self, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo, CUresult};
use std::mem::MaybeUninit;
use std::ptr;

/// A graph, or none after a capture that broke.
#[derive(Debug)]
pub(super) struct Graph(pub(super) sys::CUgraph);

// SAFETY: a graph may be used by one thread after another.
unsafe impl Send for Graph {}

impl Graph {
    pub(super) fn raw(&self) -> sys::CUgraph {
        self.0
    }

    /// Makes it executable.
    pub(super) fn instantiate(&self) -> Result<Executable> {
        let mut executable = ptr::null_mut();
        // SAFETY: the graph is alive.
        unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, self.0, 0) }
            .result()
            .map_err(|error| failed("cannot instantiate the CUDA graph of the call", error))?;
        Ok(Executable(executable))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the graph is alive and used no more. What was instantiated from it
            // stays.
            unsafe { sys::cuGraphDestroy(self.0) };
        }
    }
}

/// An executable graph. Dropped while it runs, the driver frees it afterwards.
#[derive(Debug)]
pub(crate) struct Executable(sys::CUgraphExec);

// SAFETY: an executable may be used by one thread after another.
unsafe impl Send for Executable {}

impl Executable {
    /// Gives it the parameters of another graph, for later launches. False if that has
    /// another topology, or nodes that cannot be updated: then it is as it was.
    pub(super) fn update(&mut self, graph: &Graph) -> Result<bool> {
        let mut info = MaybeUninit::<CUgraphExecUpdateResultInfo>::zeroed();
        // SAFETY: both are alive, and the driver writes the information.
        let (status, result) = unsafe {
            let status = sys::cuGraphExecUpdate_v2(self.0, graph.0, info.as_mut_ptr());
            // As a number: a newer driver may have other results.
            let result = &raw const (*info.as_ptr()).result;
            (status, result.cast::<u32>().read())
        };
        match status {
            CUresult::CUDA_SUCCESS => {
                Ok(result == CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS as u32)
            }
            CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE | CUresult::CUDA_ERROR_NOT_SUPPORTED => {
                Ok(false)
            }
            error => Err(failed(
                "cannot update the CUDA graph of the call",
                DriverError(error),
            )),
        }
    }

    pub(super) fn raw(&self) -> sys::CUgraphExec {
        self.0
    }

    /// Launches it.
    ///
    /// # Safety
    /// The stream is alive and of the graph's context; the addresses in the graph stay valid
    /// until the stream has done it.
    pub(super) unsafe fn launch(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { sys::cuGraphLaunch(self.0, stream) }
            .result()
            .map_err(|error| failed("cannot launch the CUDA graph of the call", error))
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: the executable is alive and used no more; one in flight is freed when done.
        unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}
