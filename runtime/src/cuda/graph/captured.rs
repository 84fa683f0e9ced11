//! An executable graph with what is needed to change it.

use super::describe::Nodes;
use super::raw::{Executable, Graph};
use super::staged::CopyNode;
use crate::error::Result;
use crate::graph::staging::Staging;
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

    pub(super) fn launch(&mut self, call: &OneCall<'_>) -> Result<()> {
        for copy in &mut self.copies {
            copy.follow(self.executable.raw(), call.context, call.addresses)?;
        }
        // SAFETY: the stream is alive, and the addresses in the graph are those of the call.
        unsafe { self.executable.launch(call.stream) }
    }
}
