//! Where the nodes of a graph hold the addresses of buffers.
//!
//! Two captures of one body at made-up addresses (see [`synthetic`](super::synthetic))
//! show which bytes move with a buffer; further captures, at least one of them of a real
//! call, must be exactly what these two predict. Anything that is not explained by one
//! buffer and an offset in it refuses the whole graph.

use super::description::{Description, Memset, Node};
use super::image::Image;
use super::key::Pattern;
use std::fmt;

/// A capture and the addresses that the body saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample<'a> {
    pub(crate) addresses: &'a [u64],
    pub(crate) graph: &'a Description,
}

/// What is to be written into a graph for a call's addresses.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    /// The graph for the addresses that were last verified.
    graph: Description,
    /// In the order of the nodes.
    slots: Vec<Slot>,
    /// The nodes that have any, for the addresses that were last applied.
    image: Image,
}

/// Eight bytes of a node that hold an address in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) node: usize,
    pub(super) place: Place,
    pub(super) buffer: usize,
    /// From the start of the buffer, at most its size.
    pub(super) delta: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a kernel's parameter, from this byte on.
    Param { param: usize, offset: usize },
    /// Where a memset writes.
    Dst,
}

/// Why a graph cannot be patched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The addresses of the samples do not have the call's pattern, or move buffers alike.
    Addresses,
    /// The body failed with made-up addresses, or the call's own are like them.
    Capture(String),
    /// A node of a kind that is not patched.
    Kind { node: usize, kind: &'static str },
    /// Nodes or edges depend on the addresses, or change from call to call.
    Structure,
    /// A node's function, dimensions, attributes, or values change with the addresses.
    Node(usize),
    /// A kernel's parameter changes in ways that a moved buffer does not explain.
    Param { node: usize, param: usize },
    /// A kernel's parameter, or a memset, looks like an address, but does not move.
    Fixed { node: usize },
    /// Another capture is not what was predicted, at this node.
    Prediction { node: usize, difference: String },
    /// The driver did not take what was to be written into a node.
    Write(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Addresses => write!(f, "the buffers lie in a way that cannot be imitated"),
            Refusal::Capture(error) => write!(f, "no capture at made-up addresses: {error}"),
            Refusal::Kind { node, kind } => write!(f, "node {node} is a {kind}"),
            Refusal::Structure => write!(f, "nodes or edges differ between captures"),
            Refusal::Node(node) => write!(f, "node {node} differs between captures"),
            Refusal::Param { node, param } => write!(
                f,
                "node {node}: parameter {param} changes, and is not an address in a buffer"
            ),
            Refusal::Fixed { node } => {
                write!(f, "node {node} has an address that does not move")
            }
            Refusal::Prediction { node, difference } => write!(
                f,
                "node {node} is not what was learnt from other captures: {difference}"
            ),
            Refusal::Write(error) => write!(f, "{error}"),
        }
    }
}

impl Recipe {
    /// Learns from two captures, and compares the others with what it learnt. `pattern` is
    /// that of a real call, which all samples must have.
    pub(crate) fn learn(
        pattern: &Pattern,
        [first, second]: [Sample<'_>; 2],
        checks: &[Sample<'_>],
    ) -> Result<Recipe, Refusal> {
        let mut samples = [first, second].into_iter().chain(checks.iter().copied());
        if !samples.all(|sample| pattern.is_of(sample.addresses))
            || !move_apart(pattern, first.addresses, second.addresses)
        {
            return Err(Refusal::Addresses);
        }
        if first.graph.nodes.len() != second.graph.nodes.len()
            || first.graph.edges() != second.graph.edges()
        {
            return Err(Refusal::Structure);
        }
        let second_graph = second.graph.with_stack_of(first.graph);
        let buffers = Buffers {
            first: first.addresses,
            second: second.addresses,
            sizes: pattern.sizes(),
        };
        let mut slots = Vec::new();
        for (node, pair) in (0..).zip(first.graph.nodes.iter().zip(&second_graph.nodes)) {
            learn_node(node, pair, &buffers, &mut slots)?;
        }
        let mut recipe = Recipe {
            graph: first.graph.clone(),
            image: Image::new(&first.graph.nodes, &slots),
            slots,
        };
        for check in [&first, &second].into_iter().chain(checks) {
            recipe.verify(check.addresses, check.graph)?;
        }
        Ok(recipe)
    }

    /// What to write for a call's addresses, which must have the pattern that was learnt.
    pub(crate) fn apply(&mut self, addresses: &[u64]) -> &Image {
        self.image.set(addresses);
        &self.image
    }

    /// All that is in the graph, as it was last verified.
    pub(crate) fn verified(&self) -> Image {
        Image::all(&self.graph.nodes)
    }

    fn write(&mut self, addresses: &[u64]) {
        for slot in &self.slots {
            let value = addresses[slot.buffer].wrapping_add(slot.delta);
            match (&mut self.graph.nodes[slot.node], slot.place) {
                (Node::Kernel(kernel), Place::Param { param, offset }) => {
                    kernel.params[param][offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
                }
                (Node::Memset(memset), Place::Dst) => memset.dst = value,
                (node, place) => unreachable!("{place:?} of {node:?}"),
            }
        }
    }

    /// Whether a capture of a call with these addresses is what this recipe makes.
    pub(crate) fn verify(
        &mut self,
        addresses: &[u64],
        capture: &Description,
    ) -> Result<(), Refusal> {
        self.write(addresses);
        let own = &self.graph;
        let capture = capture.with_stack_of(own);
        if own.nodes.len() != capture.nodes.len() || own.edges() != capture.edges() {
            return Err(Refusal::Structure);
        }
        let mut pairs = own.nodes.iter().zip(&capture.nodes).enumerate();
        match pairs.find(|(_, (own, captured))| own != captured) {
            Some((node, (own, captured))) => {
                let difference = own.difference(captured);
                Err(Refusal::Prediction { node, difference })
            }
            None => Ok(()),
        }
    }
}

/// Whether all buffers that may move alone do so, each by another distance.
fn move_apart(pattern: &Pattern, first: &[u64], second: &[u64]) -> bool {
    let distance = |buffer: usize| second[buffer].wrapping_sub(first[buffer]);
    let groups = pattern.groups().into_iter();
    let mut distances: Vec<u64> = groups.map(|group| distance(group.members[0].0)).collect();
    let count = distances.len();
    distances.sort_unstable();
    distances.dedup();
    distances.len() == count && !distances.contains(&0)
}

/// The buffers of two captures.
struct Buffers<'a> {
    first: &'a [u64],
    second: &'a [u64],
    sizes: &'a [u64],
}

impl Buffers<'_> {
    /// The buffer, and the offset in it, that two values are the address of. Buffers that
    /// overlap move together: any of them does.
    fn explain(&self, first: u64, second: u64) -> Option<(usize, u64)> {
        (0..self.sizes.len()).find_map(|buffer| {
            let delta = first.wrapping_sub(self.first[buffer]);
            (self.first[buffer] != 0
                && delta <= self.sizes[buffer]
                && delta == second.wrapping_sub(self.second[buffer]))
            .then_some((buffer, delta))
        })
    }

    /// Whether a value that both captures have is an address of either.
    fn has(&self, value: u64) -> bool {
        let is_in = |starts: &[u64]| {
            let mut buffers = starts.iter().zip(self.sizes);
            buffers.any(|(&start, &size)| start != 0 && value.wrapping_sub(start) <= size)
        };
        is_in(self.first) || is_in(self.second)
    }
}

fn learn_node(
    node: usize,
    pair: (&Node, &Node),
    buffers: &Buffers<'_>,
    slots: &mut Vec<Slot>,
) -> Result<(), Refusal> {
    match pair {
        (Node::Kernel(first), Node::Kernel(second)) => {
            let sizes = |params: &[Box<[u8]>]| -> Vec<usize> {
                params.iter().map(|param| param.len()).collect()
            };
            let is_same = (first.function, first.grid, first.block, first.shared)
                == (second.function, second.grid, second.block, second.shared)
                && first.attributes == second.attributes
                && sizes(&first.params) == sizes(&second.params);
            if !is_same {
                return Err(Refusal::Node(node));
            }
            for (param, pair) in first.params.iter().zip(&second.params).enumerate() {
                learn_param(node, param, [pair.0, pair.1], buffers, slots)?;
            }
            Ok(())
        }
        (Node::Memset(first), Node::Memset(second)) => {
            if first.height != 1 {
                let kind = "memset of several rows";
                return Err(Refusal::Kind { node, kind });
            }
            let dst = second.dst;
            if *second != (Memset { dst, ..*first }) {
                return Err(Refusal::Node(node));
            }
            if first.dst == dst {
                return match buffers.has(dst) {
                    true => Err(Refusal::Fixed { node }),
                    false => Ok(()),
                };
            }
            let (buffer, delta) = buffers.explain(first.dst, dst).ok_or(Refusal::Node(node))?;
            slots.push(Slot {
                node,
                place: Place::Dst,
                buffer,
                delta,
            });
            Ok(())
        }
        (Node::Copy { bytes: first }, Node::Copy { bytes: second }) if first == second => Ok(()),
        (Node::Other(kind), _) | (_, Node::Other(kind)) => Err(Refusal::Kind { node, kind }),
        _ => Err(Refusal::Node(node)),
    }
}

/// Finds addresses at any byte of a parameter: structs may be packed.
fn learn_param(
    node: usize,
    param: usize,
    [first, second]: [&[u8]; 2],
    buffers: &Buffers<'_>,
    slots: &mut Vec<Slot>,
) -> Result<(), Refusal> {
    let unexplained = || Refusal::Param { node, param };
    // Up to where changes are explained.
    let mut done = 0;
    for offset in 0..first.len().saturating_sub(7) {
        let word = |bytes: &[u8]| {
            let bytes = bytes[offset..].first_chunk().copied();
            u64::from_ne_bytes(bytes.unwrap_or_default())
        };
        let (first_word, second_word) = (word(first), word(second));
        if first_word == second_word {
            if buffers.has(first_word) {
                return Err(Refusal::Fixed { node });
            }
            continue;
        }
        let Some((buffer, delta)) = buffers.explain(first_word, second_word) else {
            continue;
        };
        if offset < done || first[done..offset] != second[done..offset] {
            return Err(unexplained());
        }
        done = offset + 8;
        slots.push(Slot {
            node,
            place: Place::Param { param, offset },
            buffer,
            delta,
        });
    }
    if first[done..] != second[done..] {
        return Err(unexplained());
    }
    Ok(())
}
