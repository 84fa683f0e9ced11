//! The shapes of a call site's buffers. XLA gives a call site the same ones in every call: they
//! are checked against the callable once, and from then on only compared.

use super::buffer::Ranges;
use super::frame::Call;
use super::sys;

/// What was found right in an earlier call of a call site: all but addresses.
#[derive(Debug)]
pub(crate) struct Known {
    /// Of the operands, then of the results.
    buffers: Box<[Buffer]>,
    /// Their dimensions, one after the other.
    dims: Box<[i64]>,
    num_operands: usize,
}

#[derive(Debug)]
struct Buffer {
    dtype: i32,
    rank: usize,
    align_mask: usize,
    /// In bytes.
    size: usize,
}

impl Known {
    /// The shapes of a call whose buffers were checked.
    pub(super) fn of(call: &Call<'_>) -> Known {
        let mut dims = Vec::new();
        let operands = call.operand_params().enumerate();
        let operands = operands.map(|(i, (param, buffer))| (param, buffer, call.operand_rank(i)));
        let results = call.result_params().enumerate();
        let results = results.map(|(i, (param, buffer))| (param, buffer, call.result_rank(i)));
        let buffers = operands
            .chain(results)
            .map(|(param, buffer, batch_rank)| {
                dims.extend_from_slice(buffer.dims());
                let ty = &param.ty.buffer;
                Buffer {
                    dtype: buffer.dtype,
                    rank: buffer.dims().len(),
                    align_mask: usize::from(ty.align_mask),
                    size: buffer.size_as(ty, batch_rank).unwrap_or(0),
                }
            })
            .collect();
        Known {
            buffers,
            dims: dims.into(),
            num_operands: call.plan().num_operands(),
        }
    }

    /// Whether a frame has buffers of these shapes, with their data there and aligned.
    ///
    /// # Safety
    /// The frame's lists of buffers are as XLA's ABI has them.
    pub(super) unsafe fn is_of(&self, frame: &sys::CallFrame, ranges: &mut Ranges) -> bool {
        let (operands, results) = self.buffers.split_at(self.num_operands);
        let (mut dims, mut index) = (&*self.dims, 0);
        for (list, buffers) in [(&frame.args, operands), (&frame.rets, results)] {
            if list.size != buffers.len() as i64 {
                return false;
            }
            if buffers.is_empty() {
                continue;
            }
            if list.buffers.is_null() || list.types.is_null() {
                return false;
            }
            for (i, known) in buffers.iter().enumerate() {
                // SAFETY: the lists have as many entries as there are buffers.
                let (ty, buffer) = unsafe { (*list.types.add(i), *list.buffers.add(i)) };
                if ty != sys::BUFFER || buffer.is_null() {
                    return false;
                }
                // SAFETY: an entry of this type points to an `XLA_FFI_Buffer`.
                let buffer = unsafe { &*buffer.cast::<sys::Buffer>() };
                let (own, others) = dims.split_at(known.rank);
                let start = buffer.data.addr();
                let is_wrong = start == 0 || start & known.align_mask != 0;
                if buffer.dtype != known.dtype
                    || buffer.rank != known.rank as i64
                    || buffer.dims() != own
                    || (is_wrong && known.size > 0)
                {
                    return false;
                }
                ranges.set(index, start, known.size);
                (dims, index) = (others, index + 1);
            }
        }
        ranges.len = index;
        true
    }
}
