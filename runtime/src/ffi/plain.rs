//! A short cut for calls in which nothing is to be done or said.
//!
//! [`Call::check`](super::frame::Call::check) decides about every call; this recognises most
//! of those that it lets pass, and touches no
//! more memory than the frame and the plan.

use super::buffer::overlap;
use super::sys;
use crate::plan::{MAX_PLAIN, PlainBuffer};
use crate::registry::Registration;
use std::mem::MaybeUninit;

/// Whether a frame is sound for a callable without declared shapes or kept attributes: not
/// batched, buffers of the right types, outputs of the first array's shape, in-outs aliased,
/// and nothing else shared.
///
/// # Safety
/// `frame` is the frame of a running EXECUTE call of the callable.
#[inline]
pub(super) unsafe fn is_plain(registration: &'static Registration, frame: &sys::CallFrame) -> bool {
    let plan = &registration.plan;
    // Batches and chosen shapes come with attributes of our own.
    if !plan.can_be_plain || frame.attrs.size != plan.num_statics() as i64 {
        return false;
    }
    let (args, rets) = (&frame.args, &frame.rets);
    if !has_len(args, plan.num_operands()) || !has_len(rets, plan.num_all_results()) {
        return false;
    }
    let mut taken = Taken::new();
    // SAFETY: the caller's promise; the lists have as many entries as there are operands and
    // results, of which the plan has the types.
    unsafe {
        has_operands(registration, args, &mut taken)
            && has_results(registration, args, rets, &mut taken)
    }
}

#[inline(always)]
fn has_len(list: &sys::Buffers, len: usize) -> bool {
    list.size == len as i64 && !list.types.is_null() && !list.buffers.is_null()
}

/// Whether the operands have their types; if so, where they lie.
///
/// # Safety
/// The list is XLA's, with as many entries as there are operands.
#[inline(always)]
unsafe fn has_operands(
    registration: &'static Registration,
    args: &sys::Buffers,
    taken: &mut Taken,
) -> bool {
    for (operand, ty) in registration.plan.plain_operands().iter().enumerate() {
        // SAFETY: the caller's promise.
        let Some((buffer, size)) = (unsafe { typed(args, operand, ty, registration) }) else {
            return false;
        };
        taken.push(buffer.data.addr(), size);
    }
    true
}

/// Whether the results have their types, the shapes of what they are as, and memory of their own.
///
/// # Safety
/// `has_operands` was true, and the list is XLA's, with as many entries as there are results.
#[inline(always)]
unsafe fn has_results(
    registration: &'static Registration,
    args: &sys::Buffers,
    rets: &sys::Buffers,
    taken: &mut Taken,
) -> bool {
    let operands = registration.plan.plain_operands();
    for (result, ty) in registration.plan.plain_results().iter().enumerate() {
        // SAFETY: the caller's promise.
        let Some((out, size)) = (unsafe { typed(rets, result, ty, registration) }) else {
            return false;
        };
        let source = usize::from(ty.source);
        let is_in_out = ty.source != PlainBuffer::NO_SOURCE;
        let twin = if is_in_out { source } else { 0 };
        // SAFETY: the list has this operand, whose type was checked.
        let twin_buffer = unsafe { buffer(args, twin) };
        let rank = ty.own_rank();
        // SAFETY: both have this many dimensions.
        if operands[twin].own_rank() != rank || !unsafe { same_dims(out, twin_buffer, rank) } {
            return false;
        }
        if is_in_out && out.data != twin_buffer.data {
            return false;
        }
        if taken.is_shared(out.data.addr(), size, source) {
            return false;
        }
        taken.push(out.data.addr(), size);
    }
    true
}

/// The addresses that are taken by the operands, then the results, so far.
struct Taken {
    len: usize,
    ranges: [MaybeUninit<(usize, usize)>; MAX_PLAIN],
}

impl Taken {
    #[inline(always)]
    fn new() -> Taken {
        Taken {
            len: 0,
            ranges: [const { MaybeUninit::uninit() }; MAX_PLAIN],
        }
    }

    #[inline(always)]
    fn push(&mut self, start: usize, size: usize) {
        self.ranges[self.len].write((start, start.saturating_add(size)));
        self.len += 1;
    }

    /// Whether any but the one at an index has an address of these.
    #[inline(always)]
    fn is_shared(&self, start: usize, size: usize, but: usize) -> bool {
        let own = (start, start.saturating_add(size));
        let ranges = &self.ranges[..self.len];
        ranges.iter().enumerate().any(|(i, range)| {
            // SAFETY: the first `len` entries were written.
            overlap(own, unsafe { range.assume_init() }) && i != but
        })
    }
}

/// The buffer at a position, with its size, if it is of the type.
///
/// # Safety
/// The list is XLA's and has more than `index` entries.
#[inline(always)]
unsafe fn typed<'a>(
    list: &'a sys::Buffers,
    index: usize,
    ty: &PlainBuffer,
    registration: &'static Registration,
) -> Option<(&'a sys::Buffer, usize)> {
    // SAFETY: the caller's promise.
    let (entry, data) = unsafe { (*list.types.add(index), *list.buffers.add(index)) };
    if entry != sys::BUFFER || data.is_null() {
        return None;
    }
    // SAFETY: an entry of this type that is not null points to an `XLA_FFI_Buffer`.
    let buffer: &sys::Buffer = unsafe { &*data.cast() };
    let rank = usize::from(ty.rank);
    if buffer.dtype != i32::from(ty.dtype)
        || buffer.rank != rank as i64
        || (buffer.dims.is_null() && rank > 0)
    {
        return None;
    }
    // Arrays of 4 GiB or more, and empty ones, whose data may be anywhere, are left to the full
    // check: with 32 bits no product overflows.
    let mut size = u64::from(ty.size);
    let mut all = 0;
    for axis in 0..rank {
        // SAFETY: XLA's buffers have `rank` dimensions.
        let dim = unsafe { *buffer.dims.add(axis) } as u64;
        size = size.wrapping_mul(dim);
        all |= dim | size;
    }
    let address = buffer.data.addr();
    let is_crooked = address & usize::from(ty.align_mask) != 0;
    if all > u64::from(u32::MAX) || size == 0 || address == 0 || is_crooked {
        return None;
    }
    if ty.packed > 0 {
        let param = &registration.callable.params[usize::from(ty.param)];
        if !buffer.has_packed(param.ty.packed) {
            return None;
        }
    }
    Some((buffer, size as usize))
}

/// # Safety
/// The list has more than `index` entries, and that one points to a buffer.
#[inline(always)]
unsafe fn buffer(list: &sys::Buffers, index: usize) -> &sys::Buffer {
    // SAFETY: the caller's promise.
    unsafe { &*(*list.buffers.add(index)).cast() }
}

/// # Safety
/// Both buffers have at least `rank` dimensions.
#[inline(always)]
unsafe fn same_dims(a: &sys::Buffer, b: &sys::Buffer, rank: usize) -> bool {
    // SAFETY: the caller's promise.
    (0..rank).all(|axis| unsafe { *a.dims.add(axis) == *b.dims.add(axis) })
}
