//! The nodes that a recipe writes, as a call needs them: side by side in memory, which the caches
//! have lost since the call before.

use super::description::{Memset, Node};
use super::learn::{Place, Slot};
use std::ops::Range;

/// Nodes of a graph that hold addresses, with these and all else that they hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    pub(crate) kernels: Vec<KernelImage>,
    /// By the numbers of their nodes.
    pub(crate) memsets: Vec<(usize, Memset)>,
    /// The parameters of all kernels.
    bytes: Vec<u8>,
    /// Where among these each parameter begins.
    starts: Vec<usize>,
    /// Addresses among the bytes, and those of memsets, by position.
    words: Vec<Word>,
    dsts: Vec<Word>,
}

/// A kernel's launch.
#[derive(Clone, Debug)]
pub(crate) struct KernelImage {
    /// The number of the node.
    pub(crate) node: usize,
    pub(crate) function: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    params: Range<usize>,
}

/// An address in a buffer, and where it is written.
#[derive(Clone, Copy, Debug)]
struct Word {
    at: usize,
    buffer: usize,
    delta: u64,
}

impl Image {
    /// The image of those nodes that have slots, which are in the order of the nodes.
    pub(super) fn new(nodes: &[Node], slots: &[Slot]) -> Image {
        let mut image = Image::default();
        for slots in slots.chunk_by(|one, next| one.node == next.node) {
            image.add(slots[0].node, &nodes[slots[0].node], slots);
        }
        image
    }

    /// The image of all nodes that can be written.
    pub(super) fn all(nodes: &[Node]) -> Image {
        let mut image = Image::default();
        for (number, node) in nodes.iter().enumerate() {
            if matches!(node, Node::Kernel(_) | Node::Memset(_)) {
                image.add(number, node, &[]);
            }
        }
        image
    }

    fn add(&mut self, number: usize, node: &Node, slots: &[Slot]) {
        let first = self.starts.len();
        match node {
            Node::Kernel(kernel) => {
                for param in &kernel.params {
                    self.starts.push(self.bytes.len());
                    self.bytes.extend_from_slice(param);
                }
                self.kernels.push(KernelImage {
                    node: number,
                    function: kernel.function,
                    grid: kernel.grid,
                    block: kernel.block,
                    shared: kernel.shared,
                    params: first..self.starts.len(),
                });
            }
            Node::Memset(memset) => self.memsets.push((number, *memset)),
            Node::Copy { .. } | Node::Other(_) => unreachable!("nothing is learnt of {node:?}"),
        }
        for &Slot {
            place,
            buffer,
            delta,
            ..
        } in slots
        {
            let (words, at) = match place {
                Place::Param { param, offset } => {
                    (&mut self.words, self.starts[first + param] + offset)
                }
                Place::Dst => (&mut self.dsts, self.memsets.len() - 1),
            };
            words.push(Word { at, buffer, delta });
        }
    }

    /// Writes a call's addresses.
    pub(super) fn set(&mut self, addresses: &[u64]) {
        for &Word { at, buffer, delta } in &self.words {
            let address = addresses[buffer].wrapping_add(delta);
            self.bytes[at..at + 8].copy_from_slice(&address.to_ne_bytes());
        }
        for &Word { at, buffer, delta } in &self.dsts {
            self.memsets[at].1.dst = addresses[buffer].wrapping_add(delta);
        }
    }

    /// Where the parameters of a kernel begin: each has the size that its function says.
    pub(crate) fn params(&self, kernel: &KernelImage) -> impl Iterator<Item = *const u8> {
        let starts = self.starts[kernel.params.clone()].iter();
        starts.map(|&start| self.bytes[start..].as_ptr())
    }

    /// The bytes of a kernel's parameters.
    #[cfg(test)]
    pub(super) fn bytes(&self, kernel: &KernelImage) -> Vec<Box<[u8]>> {
        let end = |param: usize| self.starts.get(param + 1).copied();
        let params = kernel.params.clone();
        params
            .map(|param| {
                self.bytes[self.starts[param]..end(param).unwrap_or(self.bytes.len())].into()
            })
            .collect()
    }
}
