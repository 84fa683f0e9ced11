//! A short cut for calls in which nothing is to be done or said.
//!
//! [`Call::check`](super::frame::Call::check) decides about every call; this recognises most
//! of those that it lets pass, and touches no
//! more memory than the frame and the plan.

use super::attrs::scalar;
use super::sys::{self, attr_type};
use super::values::{Values, View};
use crate::plan::{MAX_PLAIN, PlainBuffer};
use crate::registry::Registration;
use std::mem::MaybeUninit;

/// Whether a frame is sound for a callable without declared shapes or kept attributes: not
/// batched, buffers of the right types, outputs of the first array's shape, in-outs aliased,
/// and nothing else shared. If so, the values of its parameters were set.
///
/// # Safety
/// `frame` is the frame of a running EXECUTE call of the callable.
#[inline(always)]
pub(super) unsafe fn read(
    registration: &'static Registration,
    frame: &sys::CallFrame,
    values: &Values,
) -> bool {
    let plan = &registration.plan;
    // Batches and chosen shapes come with attributes of our own.
    if !plan.can_be_plain || frame.attrs.size != plan.num_statics() as i64 {
        return false;
    }
    let (args, rets) = (&frame.args, &frame.rets);
    if !has_len(args, plan.num_operands()) || !has_len(rets, plan.num_all_results()) {
        return false;
    }
    // Attributes first: XLA has written to the buffers just now, but nobody has looked at these
    // since the last call, so that memory is longest in coming.
    // SAFETY: the caller's promise; the lists have as many entries as there are static
    // attributes, operands and results.
    unsafe {
        read_numbers(registration, &frame.attrs, values)
            && Buffers::new(registration, frame, values).read()
    }
}

#[inline(always)]
fn has_len(list: &sys::Buffers, len: usize) -> bool {
    list.size == len as i64 && !list.types.is_null() && !list.buffers.is_null()
}

/// # Safety
/// The list is XLA's, with as many entries as there are static attributes.
#[inline(always)]
unsafe fn read_numbers(
    registration: &'static Registration,
    attrs: &sys::Attrs,
    values: &Values,
) -> bool {
    let numbers = registration.plan.numbers();
    if !numbers.is_empty() && (attrs.types.is_null() || attrs.attrs.is_null()) {
        return false;
    }
    // They are sorted by name here too, and nothing else is among them.
    for (position, &param) in numbers.iter().enumerate() {
        // SAFETY: the caller's promise; it is a parameter's position.
        unsafe {
            if *attrs.types.add(position) != attr_type::SCALAR {
                return false;
            }
            let Some(value) = scalar(*attrs.attrs.add(position)) else {
                return false;
            };
            values.set_word(param, value as u64);
        }
    }
    true
}

/// The buffers of a frame, those that were read with their places.
struct Buffers<'a> {
    registration: &'static Registration,
    frame: &'a sys::CallFrame,
    values: &'a Values,
    num_taken: usize,
    /// Where each begins, and its size.
    taken: [MaybeUninit<(usize, usize)>; MAX_PLAIN],
}

impl<'a> Buffers<'a> {
    #[inline(always)]
    fn new(
        registration: &'static Registration,
        frame: &'a sys::CallFrame,
        values: &'a Values,
    ) -> Buffers<'a> {
        Buffers {
            registration,
            frame,
            values,
            num_taken: 0,
            taken: [const { MaybeUninit::uninit() }; MAX_PLAIN],
        }
    }

    /// # Safety
    /// The callable can be plain, and the lists have as many entries as there are operands and
    /// results.
    #[inline(always)]
    unsafe fn read(mut self) -> bool {
        let plan = &self.registration.plan;
        for (operand, ty) in plan.plain_operands().iter().enumerate() {
            // SAFETY: the caller's promise.
            let Some((buffer, size)) = (unsafe { self.typed(&self.frame.args, operand, ty) })
            else {
                return false;
            };
            // SAFETY: the plan has no more buffers.
            unsafe { self.take(buffer, size, ty) };
        }
        for (result, ty) in plan.plain_results().iter().enumerate() {
            // SAFETY: the caller's promise.
            let Some((out, size)) = (unsafe { self.typed(&self.frame.rets, result, ty) }) else {
                return false;
            };
            let twin = usize::from(ty.twin);
            // SAFETY: the list has this operand, whose type was checked.
            let twin_buffer = unsafe { buffer(&self.frame.args, twin) };
            // SAFETY: both have this many dimensions.
            if !unsafe { same_dims(out, twin_buffer, ty.own_rank()) } {
                return false;
            }
            if ty.is_in_out && out.data != twin_buffer.data {
                return false;
            }
            let but = if ty.is_in_out { twin } else { usize::MAX };
            if self.is_shared(out.data.addr(), size, but) {
                return false;
            }
            // SAFETY: the plan has no more buffers.
            unsafe { self.take(out, size, ty) };
        }
        true
    }

    /// # Safety
    /// Fewer than [`MAX_PLAIN`] were taken before, and this is the buffer of that type.
    #[inline(always)]
    unsafe fn take(&mut self, buffer: &sys::Buffer, size: usize, ty: &PlainBuffer) {
        // SAFETY: the caller's promise.
        let taken = unsafe { self.taken.get_unchecked_mut(self.num_taken) };
        taken.write((buffer.data.addr(), size));
        self.num_taken += 1;
        // SAFETY: the plan has positions of parameters.
        unsafe { self.values.set_view(ty.param, View::of(buffer)) };
    }

    /// Whether any that was taken, but the one at an index, has an address of these.
    #[inline(always)]
    fn is_shared(&self, start: usize, size: usize, but: usize) -> bool {
        (0..self.num_taken).any(|i| {
            // SAFETY: these were written.
            let (other, other_size) = unsafe { self.taken.get_unchecked(i).assume_init() };
            // Whichever begins in the other one; no size is 0.
            let shares = start.wrapping_sub(other) < other_size || other.wrapping_sub(start) < size;
            shares && i != but
        })
    }

    /// The buffer at a position, with its size, if it is of the type.
    ///
    /// # Safety
    /// The list is XLA's and has more than `index` entries.
    #[inline(always)]
    unsafe fn typed(
        &self,
        list: &'a sys::Buffers,
        index: usize,
        ty: &PlainBuffer,
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
        let mut size = u64::from(ty.size);
        for axis in 0..rank {
            // SAFETY: XLA's buffers have `rank` dimensions.
            let dim = unsafe { *buffer.dims.add(axis) };
            // A negative one overflows, or the product is too large or 0.
            size = size.checked_mul(dim as u64)?;
        }
        // Empty arrays, whose data may be anywhere, are left to the full check.
        let is_possible = size.wrapping_sub(1) < isize::MAX as u64;
        let address = buffer.data.addr();
        let is_crooked = address & usize::from(ty.align_mask) != 0;
        if !is_possible || address == 0 || is_crooked {
            return None;
        }
        if ty.packed > 0 {
            let param = &self.registration.callable.params[usize::from(ty.param)];
            if !buffer.has_packed(param.ty.packed) {
                return None;
            }
        }
        Some((buffer, size as usize))
    }
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
