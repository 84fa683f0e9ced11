//! An executable graph with what is needed to change it.

use super::copies::{Copy, copy_all};
use super::describe::Nodes;
use super::raw::{Executable, Graph};
use super::staged::CopyNode;
use super::stream::OwnStream;
use crate::error::Result;
use crate::graph::staging::{SlotCopy, Staging};
use crate::signature::GraphMode;
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
    pub(super) mode: GraphMode,
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

    /// Queues the call: its in-outs that were elsewhere, and in mode WarpStagedEx the copies around
    /// the graph.
    ///
    /// # Safety
    /// The call's stream is alive, of the device of `own`, and not being captured. The addresses
    /// and sizes are those of the call's buffers and of its staging memory, and the graph is at them
    /// but for its `copies`.
    pub(super) unsafe fn launch(&mut self, call: &OneCall<'_>, own: &OwnStream) -> Result<()> {
        for copy in &mut self.copies {
            copy.follow(self.executable.raw(), call.context, call.addresses)?;
        }
        // SAFETY: the caller's promise; slots of staging memory do not overlap, nor do a call's
        // results.
        unsafe {
            own.within(call.stream, |stream| {
                copy_all(call.before(), stream)?;
                self.executable.launch(stream)?;
                copy_all(call.after(), stream)
            })
        }
    }
}

impl OneCall<'_> {
    /// Copies that come before the graph.
    fn before(&self) -> impl Iterator<Item = Copy> {
        let moves = self.staging.moves.iter().filter_map(|&(from, to, bytes)| {
            let (from, to) = (self.addresses[from], self.addresses[to]);
            (from != to).then_some((from, to, bytes))
        });
        let staged = self.outside(&self.staging.before);
        moves.chain(staged)
    }

    /// Copies that come after the graph.
    fn after(&self) -> impl Iterator<Item = Copy> {
        let staged = self.outside(&self.staging.after);
        staged.map(|(buffer, slot, bytes)| (slot, buffer, bytes))
    }

    /// Buffers and slots, where the copies between them are not in the graph.
    fn outside<'a>(&'a self, copies: &'a [SlotCopy]) -> impl Iterator<Item = Copy> + 'a {
        let memory = self.memory.filter(|_| self.mode == GraphMode::WarpStagedEx);
        memory.into_iter().flat_map(move |memory| {
            copies.iter().map(move |copy| {
                let buffer = self.addresses[copy.buffer];
                (buffer, memory + copy.offset, copy.bytes)
            })
        })
    }
}
