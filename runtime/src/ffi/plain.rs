//! A short cut for calls in which nothing is to be done or said.
//!
//! [`Call::check`](super::frame::Call::check) decides about every call; this recognises most
//! of those that it lets pass. It is inlined into each handler, where the plan is a
//! constant: loops unroll and the tables become immediates, so that a call touches only
//! its own frame.

use super::buffer::overlap;
use super::sys;
use crate::plan::Plan;
use crate::signature::{BufferType, Callable};

/// Whether a frame is sound for a callable without declared shapes or kept attributes: not
/// batched, buffers of the right types, outputs of the first array's shape, in-outs aliased,
/// and nothing else shared.
///
/// # Safety
/// `frame` is the frame of a running EXECUTE call, and `plan` that of `callable`.
#[inline(always)]
pub(super) unsafe fn is_plain(callable: &Callable, plan: &Plan, frame: &sys::CallFrame) -> bool {
    if plan.has_kept || plan.has_dims || plan.operands.as_slice().is_empty() {
        return false;
    }
    // Batches and chosen shapes come with attributes of our own.
    if frame.attrs.size != plan.num_statics as i64 {
        return false;
    }
    // SAFETY: the caller's promises.
    unsafe {
        has_list(callable, plan.operands.as_slice(), &frame.args)
            && has_list(callable, plan.results.as_slice(), &frame.rets)
            && has_results(callable, plan, frame)
    }
}

/// # Safety
/// `list` is as XLA's ABI has it.
#[inline(always)]
unsafe fn has_list(callable: &Callable, params: &[u8], list: &sys::Buffers) -> bool {
    if list.size != params.len() as i64 || list.types.is_null() || list.buffers.is_null() {
        return false;
    }
    let mut i = 0;
    while i < params.len() {
        let ty = &callable.params[params[i] as usize].ty;
        // SAFETY: the lists have as many entries as parameters, and an entry of this type
        // that is not null points to an `XLA_FFI_Buffer`.
        unsafe {
            if *list.types.add(i) != sys::BUFFER || (*list.buffers.add(i)).is_null() {
                return false;
            }
            let buffer = buffer(list, i);
            if buffer.size_as(&ty.buffer, 0).is_none() {
                return false;
            }
            if ty.buffer.packed > 0 && !buffer.has_packed(ty.packed) {
                return false;
            }
        }
        i += 1;
    }
    true
}

/// # Safety
/// `has_list` was true of both lists of the frame.
#[inline(always)]
unsafe fn has_results(callable: &Callable, plan: &Plan, frame: &sys::CallFrame) -> bool {
    let ty = |index: u8| &callable.params[index as usize].ty;
    let (operands, results) = (plan.operands.as_slice(), plan.results.as_slice());
    let mut result = 0;
    while result < results.len() {
        let out_type = ty(results[result]);
        // SAFETY: the lists have as many buffers as parameters.
        let out = unsafe { buffer(&frame.rets, result) };
        let source = match plan.in_outs[result] {
            Some(source) => source as usize,
            None => usize::MAX,
        };
        let twin = if source == usize::MAX { 0 } else { source };
        // SAFETY: as above.
        let twin_buffer = unsafe { buffer(&frame.args, twin) };
        let rank = out_type.rank;
        // SAFETY: both have this many dimensions.
        if ty(operands[twin]).rank != rank || !unsafe { same_dims(out, twin_buffer, rank) } {
            return false;
        }
        if source != usize::MAX && out.data != twin_buffer.data {
            return false;
        }
        let own = range(out, &out_type.buffer);
        let mut other = 0;
        while other < operands.len() {
            // SAFETY: as above.
            let theirs = range(
                unsafe { buffer(&frame.args, other) },
                &ty(operands[other]).buffer,
            );
            if other != source && overlap(own, theirs) {
                return false;
            }
            other += 1;
        }
        let mut earlier = 0;
        while earlier < result {
            // SAFETY: as above.
            let theirs = range(
                unsafe { buffer(&frame.rets, earlier) },
                &ty(results[earlier]).buffer,
            );
            if overlap(own, theirs) {
                return false;
            }
            earlier += 1;
        }
        result += 1;
    }
    true
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
    let mut axis = 0;
    while axis < rank {
        // SAFETY: the caller's promise.
        if unsafe { *a.dims.add(axis) != *b.dims.add(axis) } {
            return false;
        }
        axis += 1;
    }
    true
}

/// The addresses of a buffer that `size_as` was `Some` of.
#[inline(always)]
fn range(buffer: &sys::Buffer, ty: &BufferType) -> (usize, usize) {
    let start = buffer.data.addr();
    (
        start,
        start.saturating_add(buffer.size_as(ty, 0).unwrap_or(0)),
    )
}
