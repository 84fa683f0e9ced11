//! A short cut for calls in which nothing is to be done or said.
//!
//! [`Call::check`](super::frame::Call::check) decides about every call; this recognises most
//! of those that it lets pass, and touches no more memory than the frame and the plan.

use super::attrs::scalar;
use super::sys::{self, attr_type};
use super::values::{Values, View};
use crate::plan::{MAX_PLAIN, PlainBuffer, Plan};
use crate::registry::Registration;
use std::ffi::c_void;
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
    // Nobody has looked at the attributes since the last call, so that their memory is long in
    // coming, and the processor goes on only so far without it: they are asked for now and read
    // last.
    prefetch(frame.attrs.types);
    prefetch(frame.attrs.attrs);
    // SAFETY: the caller's promise.
    unsafe {
        read_buffers(plan, frame, values)
            && (!plan.has_packed || has_packed(registration, frame))
            && read_numbers(plan, &frame.attrs, values)
    }
}

/// # Safety
/// The list is XLA's, with as many entries as the callable has static attributes, all of which are
/// numbers.
#[inline(always)]
unsafe fn read_numbers(plan: &Plan, attrs: &sys::Attrs, values: &Values) -> bool {
    let numbers = plan.numbers();
    if !numbers.is_empty() && (attrs.types.is_null() || attrs.attrs.is_null()) {
        return false;
    }
    // They are sorted by name here too.
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

/// # Safety
/// The lists are XLA's, and the callable can be plain.
#[inline(always)]
unsafe fn read_buffers(plan: &Plan, frame: &sys::CallFrame, values: &Values) -> bool {
    let (num_operands, num_results) = (plan.num_operands(), plan.num_results());
    let mut taken = Taken::new();
    let args = &frame.args;
    if !has_len(args, num_operands) {
        return false;
    }
    for i in 0..num_operands {
        // SAFETY: a plain callable has at most `MAX_PLAIN` operands and results, and the list has
        // this operand.
        unsafe {
            let ty = plan.plain.get_unchecked(i);
            let Some((view, range)) = typed(*args.types.add(i), *args.buffers.add(i), ty) else {
                return false;
            };
            taken.set(i, range);
            values.set_view(ty.param, view);
        }
    }
    let rets = &frame.rets;
    if !has_len(rets, num_results) {
        return false;
    }
    // With the numbers that they have after the operands.
    let types = rets.types.wrapping_sub(num_operands);
    let buffers = rets.buffers.wrapping_sub(num_operands);
    for i in num_operands..num_operands + num_results {
        // SAFETY: as above, and what is less than `i` was taken.
        unsafe {
            let ty = plan.plain.get_unchecked(i);
            let (entry, buffer) = (*types.wrapping_add(i), *buffers.wrapping_add(i));
            let Some((view, range)) = typed(entry, buffer, ty) else {
                return false;
            };
            // An operand, which was seen to be a buffer with these dimensions.
            let twin = usize::from(ty.twin);
            let twin_buffer = &*(*args.buffers.add(twin)).cast::<sys::Buffer>();
            if !same_dims(view.dims, twin_buffer.dims, ty.own_rank()) {
                return false;
            }
            if ty.is_in_out {
                if view.data != twin_buffer.data.cast() {
                    return false;
                }
                taken.set(twin, NOWHERE);
            }
            if taken.overlap(i, range) {
                return false;
            }
            taken.set(i, range);
            values.set_view(ty.param, view);
        }
    }
    true
}

#[inline(always)]
fn has_len(list: &sys::Buffers, len: usize) -> bool {
    list.size == len as i64 && !list.types.is_null() && !list.buffers.is_null()
}

/// Where a buffer begins and ends.
type Range = (usize, usize);

/// What overlaps nothing: instead of an in-out's operand, whose memory is the result's.
const NOWHERE: Range = (usize::MAX, 0);

/// The addresses that the operands take, then the results, so far.
struct Taken {
    starts: [MaybeUninit<usize>; MAX_PLAIN],
    ends: [MaybeUninit<usize>; MAX_PLAIN],
}

impl Taken {
    #[inline(always)]
    fn new() -> Taken {
        Taken {
            starts: [const { MaybeUninit::uninit() }; MAX_PLAIN],
            ends: [const { MaybeUninit::uninit() }; MAX_PLAIN],
        }
    }

    /// # Safety
    /// The index is less than [`MAX_PLAIN`].
    #[inline(always)]
    unsafe fn set(&mut self, index: usize, (start, end): Range) {
        debug_assert!(index < MAX_PLAIN);
        // SAFETY: the caller's promise.
        unsafe {
            self.starts.get_unchecked_mut(index).write(start);
            self.ends.get_unchecked_mut(index).write(end);
        }
    }

    /// Whether any of the first ones has an address of these.
    ///
    /// # Safety
    /// As many were set.
    #[inline(always)]
    unsafe fn overlap(&self, len: usize, (start, end): Range) -> bool {
        for i in 0..len {
            // SAFETY: the caller's promise.
            let (other_start, other_end) = unsafe {
                (
                    self.starts.get_unchecked(i).assume_init(),
                    self.ends.get_unchecked(i).assume_init(),
                )
            };
            if other_start < end && start < other_end {
                return true;
            }
        }
        false
    }
}

/// The view of a list's entry, with its addresses, if it is a buffer of the type, but for packed
/// dimensions, and not empty: the data of empty arrays may be anywhere, which is left to the full
/// check.
///
/// # Safety
/// The entry is one of XLA's.
#[inline(always)]
unsafe fn typed(entry: i32, data: *mut c_void, ty: &PlainBuffer) -> Option<(View, Range)> {
    if entry != sys::BUFFER || data.is_null() {
        return None;
    }
    // SAFETY: an entry of this type that is not null points to an `XLA_FFI_Buffer`.
    let buffer: &sys::Buffer = unsafe { &*data.cast() };
    let rank = usize::from(ty.rank);
    if buffer.dtype != i32::from(ty.dtype) || buffer.rank != rank as i64 {
        return None;
    }
    let view = View::of(buffer);
    let mut size = u64::from(ty.size);
    if rank > 0 {
        if view.dims.is_null() {
            return None;
        }
        for axis in 0..rank {
            // SAFETY: XLA's buffers have `rank` dimensions.
            let dim = unsafe { *view.dims.add(axis) };
            // With a negative one the product overflows, is too large, or 0.
            size = size.checked_mul(dim as u64)?;
        }
    }
    let start = view.data.addr();
    let is_crooked = start as u8 & ty.align_mask != 0;
    if size as i64 <= 0 || start == 0 || is_crooked {
        return None;
    }
    Some((view, (start, start.checked_add(size as usize)?)))
}

/// Whether the buffers have their packed dimensions. Out of line, for it reads the description,
/// which few calls need.
///
/// # Safety
/// `read_buffers` was true.
#[cold]
#[inline(never)]
unsafe fn has_packed(registration: &'static Registration, frame: &sys::CallFrame) -> bool {
    let plan = &registration.plan;
    let (args, rets) = (&frame.args, &frame.rets);
    let is_packed = |(i, (list, param)): (usize, (&sys::Buffers, &u8))| {
        // SAFETY: the lists have as many buffers as there are parameters of theirs.
        let buffer = unsafe { &*(*list.buffers.add(i)).cast::<sys::Buffer>() };
        buffer.has_packed(registration.callable.params[usize::from(*param)].ty.packed)
    };
    let all = |list, params: &[u8]| {
        let mut entries = params.iter().map(|param| (list, param)).enumerate();
        entries.all(is_packed)
    };
    all(args, plan.operand_params()) && all(rets, plan.result_params())
}

/// Asks for memory that will be needed, if there is a way; the address may be anything.
#[inline(always)]
fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: it has no effect but on the caches.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// # Safety
/// Both are lists of at least `rank` dimensions.
#[inline(always)]
unsafe fn same_dims(a: *const i64, b: *const i64, rank: usize) -> bool {
    // SAFETY: the caller's promise.
    (0..rank).all(|axis| unsafe { *a.add(axis) == *b.add(axis) })
}
