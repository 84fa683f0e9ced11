//! Random bodies: what they put into a graph for the addresses that they see.

use super::super::description::{Description, Kernel, Memset, Node};
use super::super::key::Pattern;
use super::super::random::Random;
use std::cell::Cell;

/// Some bytes of a kernel's parameter.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Bytes(Vec<u8>),
    /// An address in a buffer.
    Address(usize, u64),
    /// What the pattern fixes of a buffer's address.
    Alignment(usize),
}

/// What a body does with the addresses that it sees.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Launch(Vec<Vec<Piece>>),
    Memset(usize, u64),
    /// Two nodes where one buffer is aligned to 32 bytes, one where it is not.
    IfAligned(usize),
    /// A node where a buffer is null.
    IfNull(usize),
    /// A node where two buffers are one.
    IfSame(usize, usize),
    Unsound(Misuse),
}

/// Uses of addresses that a recipe cannot follow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Misuse {
    /// A parameter of eight bytes.
    Word(fn(u64, u64) -> u64),
    /// A parameter of four bytes.
    Half(fn(u64, u64) -> u32),
    /// The low bytes of an address, but not all.
    Truncated(usize),
    /// Another node, depending on the addresses.
    Branch(fn(u64, u64) -> bool),
    /// Another function, grid, shared memory or attribute.
    Launch(fn(&mut Kernel, u64)),
    /// Another value of a memset.
    MemsetValue,
    /// A memset of an address that is none of a buffer.
    MemsetElsewhere,
    /// Two nodes in another order.
    Order,
    /// A parameter of a size that depends on the address.
    Size,
    /// A counter of the host's.
    Counter,
    /// Constants that are made-up addresses, of one set each.
    Constant(usize),
    MemsetConstant(usize),
    /// Nodes that cannot be patched.
    Rows,
    Other,
}

pub(super) struct Body {
    pub(super) steps: Vec<Step>,
    /// For a misuse: buffers of different groups.
    pub(super) pair: [usize; 2],
    pub(super) made_up: Vec<Vec<u64>>,
    pub(super) calls: Cell<u64>,
}

pub(super) fn kernel(params: Vec<Vec<u8>>) -> Kernel {
    Kernel {
        function: 0x5555_0000_1000 + 64 * params.len() as u64,
        grid: [1 + params.len() as u32, 1, 1],
        block: [256, 1, 1],
        shared: 0,
        attributes: vec![1, 2, 3],
        params: params.into_iter().map(Vec::into_boxed_slice).collect(),
        stack_words: Vec::new(),
    }
}

pub(super) fn word(value: u64) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}

impl Body {
    /// A body without a misuse.
    pub(super) fn new(steps: Vec<Step>) -> Body {
        Body {
            steps,
            pair: [0; 2],
            made_up: Vec::new(),
            calls: Cell::new(0),
        }
    }

    pub(super) fn capture(&self, seen: &[u64]) -> Description {
        let mut nodes = Vec::new();
        for step in &self.steps {
            self.run(step, seen, &mut nodes);
        }
        self.calls.set(self.calls.get() + 1);
        let edges = (1..nodes.len() as u32).map(|i| (i - 1, i)).rev().collect();
        Description::new(nodes, edges)
    }

    fn run(&self, step: &Step, seen: &[u64], nodes: &mut Vec<Node>) {
        let launch = |params| Node::Kernel(kernel(params));
        match step {
            Step::Launch(params) => {
                let bytes = |pieces: &Vec<Piece>| -> Vec<u8> {
                    let each = pieces.iter().map(|piece| match piece {
                        Piece::Bytes(bytes) => bytes.clone(),
                        Piece::Address(buffer, delta) if seen[*buffer] != 0 => {
                            word(seen[*buffer] + delta)
                        }
                        Piece::Address(..) => word(0),
                        Piece::Alignment(buffer) => vec![seen[*buffer] as u8],
                    });
                    each.collect::<Vec<_>>().concat()
                };
                nodes.push(launch(params.iter().map(bytes).collect()));
            }
            Step::Memset(buffer, delta) => nodes.push(memset(seen[*buffer] + delta)),
            Step::IfAligned(buffer) => {
                if seen[*buffer].is_multiple_of(32) {
                    nodes.push(launch(vec![word(seen[*buffer])]));
                }
                nodes.push(launch(vec![vec![1]]));
            }
            Step::IfNull(buffer) if seen[*buffer] == 0 => nodes.push(launch(vec![])),
            Step::IfSame(a, b) if seen[*a] == seen[*b] => nodes.push(launch(vec![vec![7]])),
            Step::IfNull(_) | Step::IfSame(..) => {}
            Step::Unsound(misuse) => self.misuse(*misuse, seen, nodes),
        }
    }

    fn misuse(&self, misuse: Misuse, seen: &[u64], nodes: &mut Vec<Node>) {
        let [a, b] = self.pair.map(|buffer| seen[buffer]);
        let launch = |params| Node::Kernel(kernel(params));
        match misuse {
            Misuse::Word(of) => nodes.push(launch(vec![word(a), word(of(a, b))])),
            Misuse::Half(of) => nodes.push(launch(vec![of(a, b).to_ne_bytes().to_vec()])),
            Misuse::Truncated(bytes) => nodes.push(launch(vec![word(a)[..bytes].to_vec()])),
            Misuse::Branch(of) => {
                if of(a, b) {
                    nodes.push(launch(vec![]));
                }
            }
            Misuse::Launch(change) => {
                let mut kernel = kernel(vec![word(a)]);
                change(&mut kernel, a);
                nodes.push(Node::Kernel(kernel));
            }
            Misuse::MemsetValue => {
                let mut node = memset(b);
                if let Node::Memset(memset) = &mut node {
                    memset.value = (a >> 12) as u32;
                }
                nodes.push(node);
            }
            Misuse::MemsetElsewhere => nodes.push(memset(a.wrapping_sub(8))),
            Misuse::Order => {
                let pair = [launch(vec![word(a)]), launch(vec![word(b)])];
                nodes.extend(if a < b {
                    pair.to_vec()
                } else {
                    pair.into_iter().rev().collect()
                });
            }
            Misuse::Size => nodes.push(launch(vec![vec![0; (a >> 9 & 3) as usize]])),
            Misuse::Counter => nodes.push(launch(vec![vec![self.calls.get() as u8]])),
            Misuse::Constant(set) => {
                let constant = self.made_up[set][self.pair[0]];
                nodes.push(launch(vec![[vec![9; 3], word(constant)].concat()]));
            }
            Misuse::MemsetConstant(set) => nodes.push(memset(self.made_up[set][self.pair[1]])),
            Misuse::Rows => {
                let mut node = memset(a);
                if let Node::Memset(memset) = &mut node {
                    memset.height = 2;
                }
                nodes.push(node);
            }
            Misuse::Other => nodes.push(Node::Other("host function")),
        }
    }
}

pub(super) fn memset(dst: u64) -> Node {
    Node::Memset(Memset {
        dst,
        value: 0,
        element_size: 1,
        width: 4,
        height: 1,
    })
}

fn mix(value: u64) -> u64 {
    Random::new(value).next()
}

pub(super) const MISUSES: &[Misuse] = &[
    Misuse::Word(|a, b| b.wrapping_sub(a)),
    Misuse::Word(|a, b| (b.wrapping_sub(a) as i64).unsigned_abs()),
    Misuse::Word(|a, b| b.wrapping_sub(a) / 4),
    Misuse::Word(|a, b| a ^ b),
    Misuse::Word(|a, b| a.wrapping_add(b)),
    Misuse::Word(u64::max),
    Misuse::Word(|a, _| a >> 3),
    Misuse::Word(|a, _| a >> 56),
    Misuse::Word(|a, _| a << 8),
    Misuse::Word(|a, _| a.swap_bytes()),
    Misuse::Word(|a, _| !a),
    Misuse::Word(|a, _| a.wrapping_neg()),
    Misuse::Word(|a, _| a - 4),
    // One beyond the end of the largest buffer.
    Misuse::Word(|a, _| a + (1 << 38) + 1),
    Misuse::Word(|a, _| mix(a)),
    Misuse::Word(|a, b| mix(a ^ mix(b))),
    Misuse::Word(|a, _| a & !0xfff),
    Misuse::Half(|a, _| a as u32),
    Misuse::Half(|a, _| (a >> 32) as u32),
    Misuse::Half(|a, _| mix(a) as u32),
    Misuse::Half(|a, b| b.wrapping_sub(a) as u32),
    Misuse::Half(|a, _| (a >> 40 & 1) as u32),
    Misuse::Truncated(4),
    Misuse::Truncated(6),
    Misuse::Truncated(7),
    Misuse::Branch(|a, _| a % 512 < 256),
    Misuse::Branch(|a, _| a >> 21 & 1 == 0),
    Misuse::Branch(|a, _| a >> 46 & 1 == 0),
    Misuse::Branch(|a, b| a < b),
    Misuse::Launch(|kernel, a| kernel.function += a >> 9 & 1),
    Misuse::Launch(|kernel, a| kernel.grid[2] += (a >> 14 & 1) as u32),
    Misuse::Launch(|kernel, a| kernel.block[1] += (a >> 10 & 1) as u32),
    Misuse::Launch(|kernel, a| kernel.shared += (a >> 33 & 1) as u32),
    Misuse::Launch(|kernel, a| kernel.attributes.push((a >> 30 & 1) as u8)),
    Misuse::MemsetValue,
    Misuse::MemsetElsewhere,
    Misuse::Order,
    Misuse::Size,
    Misuse::Counter,
    Misuse::Constant(0),
    Misuse::Constant(1),
    Misuse::MemsetConstant(0),
    Misuse::MemsetConstant(1),
    Misuse::Rows,
    Misuse::Other,
];

/// A real call: null, empty, shared, overlapping and unaligned buffers among others.
pub(super) fn random_call(random: &mut Random) -> (Vec<u64>, Vec<u64>) {
    let count = 1 + random.below(8) as usize;
    let (mut addresses, mut sizes) = (Vec::new(), Vec::new());
    for i in 0..count {
        let size = [0, 4, 256, 1000, 1 << 20, 1 << 38][random.below(6) as usize];
        let old = addresses.get(random.below(8) as usize).copied();
        let address = match (random.below(8), old) {
            (0, _) if size == 0 => 0,
            (1, Some(old)) => old,
            (2, Some(old)) if old > 0 => old + random.below(300),
            _ => (0x7f00 << 32) + ((i as u64) << 39) + 16 * random.below(4096),
        };
        addresses.push(address);
        sizes.push(size);
    }
    (addresses, sizes)
}

/// Another real call of the same pattern.
pub(super) fn moved(pattern: &Pattern, random: &mut Random) -> Vec<u64> {
    let mut groups = pattern.groups();
    random.shuffle(&mut groups);
    let mut addresses = vec![0; pattern.addresses().len()];
    let mut free: u64 = 0x7000 << 32;
    for group in groups {
        free = (free + (random.below(4) << random.below(30))).next_multiple_of(256);
        for (buffer, offset) in group.members {
            addresses[buffer] = free + group.start % 256 + offset;
        }
        free += 256 + group.len;
    }
    assert!(pattern.is_of(&addresses));
    addresses
}

pub(super) fn random_steps(random: &mut Random, addresses: &[u64], sizes: &[u64]) -> Vec<Step> {
    let count = addresses.len() as u64;
    let steps = 1 + random.below(6);
    (0..steps)
        .map(|_| {
            let buffer = random.below(count) as usize;
            let delta = match random.below(3) {
                0 => 0,
                1 => sizes[buffer],
                _ => random.below(sizes[buffer] + 1),
            };
            match random.below(10) {
                0 => Step::IfAligned(buffer),
                1 => Step::IfNull(buffer),
                2 => Step::IfSame(buffer, random.below(count) as usize),
                3 if addresses[buffer] != 0 => Step::Memset(buffer, delta),
                _ => {
                    let params = 1 + random.below(5);
                    let params = (0..params).map(|_| random_param(random, sizes));
                    Step::Launch(params.collect())
                }
            }
        })
        .collect()
}

fn random_param(random: &mut Random, sizes: &[u64]) -> Vec<Piece> {
    let pieces = 1 + random.below(4);
    (0..pieces)
        .map(|_| {
            let buffer = random.below(sizes.len() as u64) as usize;
            match random.below(5) {
                // Small numbers, floats and padding, of any length: what follows may be
                // anywhere in the struct.
                0 => Piece::Bytes(vec![random.below(3) as u8; 1 + random.below(12) as usize]),
                1 => Piece::Bytes(word(random.below(1 << 40))),
                2 => Piece::Alignment(buffer),
                _ => Piece::Address(buffer, random.below(sizes[buffer] + 1)),
            }
        })
        .collect()
}
