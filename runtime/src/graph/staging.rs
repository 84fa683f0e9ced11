//! Which buffers of a call are staged, and with that, what a graph's nodes point to.
//!
//! A staged buffer is seen by the body at a slot in memory of the call site, which does
//! not move: the graph does not change when XLA's buffer does. All others are seen where
//! XLA has them, and their addresses are the key of the graph. Nothing staged is mode
//! `Warp`.
//!
//! Staging changes where a body works, never what a call returns:
//! - An input that is not staged has the value of this call, not that of the first one.
//! - An output that is not staged is written where XLA wants it.
//! - An in-out is one array: it is staged if both lists have it, and copied both ways.
//!   In one list alone, or in none, the body works on XLA's result; nothing accumulates
//!   in staging memory from call to call.
//! - One array given for two inputs has two slots, for the next call may give two arrays.
//! - An empty array is never staged.
//! - Scratch has a slot like an output, and is not copied.
//!
//! In a batch, a slot holds all of it, and sub-views are taken of the slot.

use super::key::ALIGNMENT;
use crate::error::{Code, Error, Result};

/// An array parameter. Buffers are numbered as in a call: operands, then results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    /// Inputs and in-outs have one.
    pub(crate) operand: Option<usize>,
    /// Outputs and in-outs have one.
    pub(crate) result: Option<usize>,
    /// In bytes, with all of the batch.
    pub(crate) size: u64,
    /// Whether `stage_in` has it, in a staged mode.
    pub(crate) stage_in: bool,
    /// Whether `stage_out` has it, in a staged mode.
    pub(crate) stage_out: bool,
    /// Whether it is scratch, a result that nobody reads.
    pub(crate) is_scratch: bool,
}

/// A copy between a buffer and its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotCopy {
    pub(crate) buffer: usize,
    /// Of the slot, in staging memory.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// What has to be done around the body of a call site.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Staging {
    /// Bytes of staging memory, whose address must be a multiple of [`ALIGNMENT`].
    pub(crate) bytes: u64,
    /// In-outs that are not staged, as (operand, result, bytes): where XLA did not alias
    /// the two, the first is copied to the second before anything else.
    pub(crate) moves: Vec<(usize, usize, u64)>,
    /// Copies to slots, before the body.
    pub(crate) before: Vec<SlotCopy>,
    /// Copies from slots, after it.
    pub(crate) after: Vec<SlotCopy>,
    /// The buffers whose addresses the nodes of the graph hold: the body sees them.
    keys: Vec<usize>,
    /// The sizes of these.
    key_sizes: Vec<u64>,
    /// For each buffer that the body sees at a slot, the offset.
    slots: Vec<(usize, u64)>,
}

impl Staging {
    /// The plan of a call site with these arrays, in the order of the parameters.
    pub(crate) fn new(arrays: &[Array]) -> Result<Staging> {
        let mut staging = Staging::default();
        for array in arrays {
            let is_staged = array.size > 0
                && (array.operand.is_none() || array.stage_in)
                && (array.result.is_none() || array.stage_out);
            if is_staged {
                let offset = staging.reserve(array.size)?;
                let copy = |buffer| SlotCopy {
                    buffer,
                    offset,
                    bytes: array.size,
                };
                staging.before.extend(array.operand.map(copy));
                let result = array.result.filter(|_| !array.is_scratch);
                staging.after.extend(result.map(copy));
                let buffers = array.operand.into_iter().chain(array.result);
                staging.slots.extend(buffers.map(|b| (b, offset)));
                continue;
            }
            if let (Some(operand), Some(result)) = (array.operand, array.result)
                && array.size > 0
            {
                staging.moves.push((operand, result, array.size));
            }
            // The body sees an in-out at its result.
            staging.keys.extend(array.result.or(array.operand));
            staging.key_sizes.push(array.size);
        }
        Ok(staging)
    }

    /// The offset of a new slot.
    fn reserve(&mut self, size: u64) -> Result<u64> {
        let offset = self.bytes;
        self.bytes = size
            .checked_next_multiple_of(ALIGNMENT)
            .and_then(|size| size.checked_add(offset))
            .filter(|&bytes| bytes <= i64::MAX as u64)
            .ok_or_else(|| {
                Error::new(
                    Code::ResourceExhausted,
                    format!(
                        "staging buffers of {offset} and {size} bytes exceed the address space"
                    ),
                )
            })?;
        Ok(offset)
    }

    /// The key of a call with buffers at these addresses; one address for each of
    /// [`key_sizes`](Self::key_sizes).
    pub(crate) fn key(&self, addresses: &[u64]) -> impl Iterator<Item = u64> {
        self.keys.iter().map(|&buffer| addresses[buffer])
    }

    /// The sizes in bytes of the buffers whose addresses are the key.
    pub(crate) fn key_sizes(&self) -> &[u64] {
        &self.key_sizes
    }

    /// Where the body sees the buffers: those of the key there, the staged ones in staging
    /// memory at `memory`, and the rest, which it does not see, nowhere.
    pub(crate) fn seen(&self, key: &[u64], memory: u64, num_buffers: usize) -> Vec<u64> {
        let mut seen = vec![0; num_buffers];
        for (&buffer, &address) in self.keys.iter().zip(key) {
            seen[buffer] = address;
        }
        for &(buffer, offset) in &self.slots {
            seen[buffer] = memory + offset;
        }
        seen
    }
}
