//! An executable graph with what is needed to change it.

use super::copies::copy;
use super::describe::Nodes;
use super::raw::{Executable, Graph};
use super::staged::{CopyNode, capture_copies};
use super::stream::OwnStream;
use crate::error::Result;
use crate::graph::staging::{SlotCopy, Staging};
use cudarc::driver::sys;

/// An executable graph.
pub(super) struct Captured {
    pub(super) executable: Executable,
    /// Copies whose addresses are set before each launch.
    pub(super) copies: Vec<CopyNode>,
    /// How to patch it, and what: the nodes of the graph.
    pub(super) recipe: Option<(usize, Nodes)>,
    /// What it was instantiated from, by whose nodes its own are known.
    pub(super) graph: Graph,
}

/// A call, on its way to a graph.
#[derive(Clone, Copy)]
pub(super) struct OneCall<'a> {
    pub(super) stream: sys::CUstream,
    pub(super) context: sys::CUcontext,
    pub(super) addresses: &'a [u64],
    pub(super) key: &'a [u64],
    pub(super) staging: &'a Staging,
    /// Where arrays are staged, if any is.
    pub(super) memory: Option<u64>,
}

impl Captured {
    pub(super) fn new(graph: Graph, copies: Vec<CopyNode>) -> Result<Captured> {
        Ok(Captured {
            executable: graph.instantiate()?,
            copies,
            recipe: None,
            graph,
        })
    }

    /// Takes note of where the copies of the graph are that the executable was updated from.
    pub(super) fn replace(&mut self, graph: Graph, copies: Vec<CopyNode>) {
        for (own, new) in self.copies.iter_mut().zip(copies) {
            own.take_params(new);
        }
        drop(graph);
    }

    /// Queues the graph on a stream, with its copies at the call's buffers.
    ///
    /// # Safety
    /// The stream is alive, of the graph's device, and not being captured. The addresses are those
    /// of the call's buffers, and the graph is at them but for its `copies`.
    unsafe fn launch(&mut self, call: &OneCall<'_>, stream: sys::CUstream) -> Result<()> {
        for copy in &mut self.copies {
            copy.follow(self.executable.raw(), call.context, call.addresses)?;
        }
        // SAFETY: the caller's promise.
        unsafe { self.executable.launch(stream) }
    }
}

/// Graphs of the copies around that of the body, in mode WarpStagedEx: the driver takes as long to
/// queue one copy as to launch a graph of many.
pub(super) struct Around {
    before: Option<Captured>,
    after: Option<Captured>,
}

impl Around {
    /// Those of a call site, whose staging memory is at this address.
    pub(super) fn new(call: &OneCall<'_>, memory: u64, own: &mut OwnStream) -> Result<Around> {
        let mut side = |copies: &[SlotCopy], is_before| {
            if copies.is_empty() {
                return Ok(None);
            }
            let stream = own.raw();
            let mut nodes = Vec::new();
            let graph = own.capture(|| {
                // SAFETY: the stream is being captured; slots and buffers have these sizes.
                nodes =
                    unsafe { capture_copies(copies, is_before, call.addresses, memory, stream)? };
                Ok(())
            })?;
            Captured::new(graph, nodes).map(Some)
        };
        Ok(Around {
            before: side(&call.staging.before, true)?,
            after: side(&call.staging.after, false)?,
        })
    }
}

impl OneCall<'_> {
    /// Queues the call: its in-outs that were elsewhere, then the graph with what is around it.
    ///
    /// # Safety
    /// The call's stream is alive, of the device of `own`, and not being captured. The addresses
    /// and sizes are those of the call's buffers and of its staging memory, and the graph is at them
    /// but for its `copies`; `around` is of the same call site.
    pub(super) unsafe fn launch(
        &self,
        captured: &mut Captured,
        around: Option<&mut Around>,
        own: &OwnStream,
    ) -> Result<()> {
        // SAFETY: the caller's promise; slots of staging memory do not overlap, nor do a call's
        // results.
        unsafe {
            own.within(self.stream, |stream| {
                for &(from, to, bytes) in &self.staging.moves {
                    let (from, to) = (self.addresses[from], self.addresses[to]);
                    if from != to {
                        copy((from, to, bytes), stream)?;
                    }
                }
                let (before, after) = match around {
                    Some(around) => (around.before.as_mut(), around.after.as_mut()),
                    None => (None, None),
                };
                let graphs = [before, Some(captured), after];
                let mut graphs = graphs.into_iter().flatten();
                graphs.try_for_each(|graph| graph.launch(self, stream))
            })
        }
    }
}
