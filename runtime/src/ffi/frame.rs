//! A call: the buffers of a frame, checked against the callable's description.
//!
//! What runs in every call only says yes or no; `explain` finds the words for a no.

use super::api::Api;
use super::attrs::{Attrs, changed};
use super::host_call::HostCall;
use super::state::{self, CallSite};
use super::sys;
use crate::batch::{self, Batch};
use crate::cpu::Context;
use crate::dims::{self, Shapes};
use crate::error::{Error, Result};
use crate::plan::{Plan, slot};
use crate::signature::{BufferType, Callable, Param};
use std::mem::MaybeUninit;
use std::ptr;

/// One execution of a call site, after its checks.
pub struct Call<'a> {
    pub(super) callable: &'static Callable,
    pub(super) plan: &'static Plan,
    pub(super) frame: &'a sys::CallFrame,
    /// Only fetched for calls that need it: a batch, or static attributes that it keeps.
    pub(super) site: Option<&'a CallSite>,
    pub(super) context: Context,
    /// The number of batch axes.
    pub(super) batch_rank: usize,
    /// The batch sizes, outermost first.
    sizes: &'a [i64],
    /// The batch element that the body runs for.
    element: usize,
}

impl<'a> Call<'a> {
    /// Checks a frame and, where XLA did not alias an in-out, copies it to its result.
    ///
    /// # Safety
    /// `frame` is the frame of a running EXECUTE call with the API table `api`, of the
    /// callable that `plan` is of.
    #[inline]
    pub(crate) unsafe fn new(
        callable: &'static Callable,
        plan: &'static Plan,
        api: Api<'a>,
        frame: &'a sys::CallFrame,
    ) -> Result<Call<'a>> {
        let mut call = Call {
            callable,
            plan,
            frame,
            site: None,
            // SAFETY: the context is used during this call only.
            context: Context::new(unsafe { HostCall::new(api, frame.ctx) }),
            batch_rank: 0,
            sizes: &[],
            element: 0,
        };
        let attrs = call.attrs();
        if attrs.len() != plan.num_attrs {
            return Err(changed());
        }
        let is_batched = !attrs.text(plan.batch)?.is_empty();
        if is_batched || plan.has_kept {
            // SAFETY: this is the running call's context.
            call.site = Some(unsafe { state::get(api, frame.ctx)? });
        }
        let batch = call.site.filter(|_| is_batched).map(|site| &site.batch);
        call.batch_rank = batch.map_or(0, Batch::rank);
        let mut ranges = Ranges::new();
        // SAFETY: the frame is XLA's.
        if !unsafe { call.has_buffers(&mut ranges) } {
            return Err(call.explain_buffers());
        }
        if let Some(batch) = batch {
            call.check_batch(batch)?;
        }
        call.check_shapes()?;
        if let Some((result, other)) = call.overlap(&ranges) {
            return Err(call.explain_overlap(result, other));
        }
        if plan.has_in_outs {
            call.copy_in_outs()?;
        }
        Ok(call)
    }

    /// Runs the body, once for each batch element.
    #[inline]
    pub(crate) fn run(&mut self, mut body: impl FnMut(&Call<'a>) -> Result<()>) -> Result<()> {
        if self.batch_rank == 0 {
            return body(self);
        }
        // The results have this many elements in memory, so that it cannot overflow.
        let total = self.sizes.iter().map(|&size| size as usize).product();
        for element in 0..total {
            self.element = element;
            body(self).map_err(|error| {
                let code = error.code();
                Error::new(code, format!("batch element {element}: {error}"))
            })?;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn attrs(&self) -> Attrs<'a> {
        // SAFETY: the frame is XLA's.
        unsafe { Attrs::new(&self.frame.attrs) }
    }

    #[inline]
    pub(super) fn operand_buffer(&self, index: usize) -> &'a sys::Buffer {
        assert!(index < self.plan.operands.as_slice().len());
        // SAFETY: `has_buffers` found as many buffers, none of them null.
        unsafe { &*(*self.frame.args.buffers.add(index)).cast() }
    }

    #[inline]
    pub(super) fn result_buffer(&self, index: usize) -> &'a sys::Buffer {
        assert!(index < self.plan.results.as_slice().len());
        // SAFETY: `has_buffers` found as many buffers, none of them null.
        unsafe { &*(*self.frame.rets.buffers.add(index)).cast() }
    }

    /// The parameters of the operands with their buffers.
    pub(super) fn operand_params(&self) -> impl Iterator<Item = (&'static Param, &'a sys::Buffer)> {
        let indices = self.plan.operands.as_slice().iter().enumerate();
        indices.map(|(i, &param)| (self.param(param), self.operand_buffer(i)))
    }

    /// The parameters of the results with their buffers.
    pub(super) fn result_params(&self) -> impl Iterator<Item = (&'static Param, &'a sys::Buffer)> {
        let indices = self.plan.results.as_slice().iter().enumerate();
        indices.map(|(i, &param)| (self.param(param), self.result_buffer(i)))
    }

    fn param(&self, index: u8) -> &'static Param {
        &self.callable.params[usize::from(index)]
    }

    /// The own dimensions of a buffer: without batch axes and packed dimensions.
    #[inline]
    pub(super) fn own_dims(&self, buffer: &'a sys::Buffer, packed: usize) -> &'a [i64] {
        let dims = buffer.dims();
        &dims[self.batch_rank..dims.len() - packed]
    }

    /// Where this batch element's data begins.
    #[inline]
    pub(super) fn data(&self, buffer: &'a sys::Buffer) -> *mut u8 {
        let data = buffer.data.cast::<u8>();
        if self.batch_rank == 0 {
            return data;
        }
        let (leading, own) = buffer.dims().split_at(self.batch_rank);
        let scalar = buffer.dtype().map_or(0, crate::DataType::size);
        let size = own.iter().map(|&dim| dim as usize).product::<usize>() * scalar;
        if size == 0 {
            return data;
        }
        data.wrapping_add(batch::position(self.element, self.sizes, leading) * size)
    }

    /// Whether the frame has the buffers of the callable's parameters: their number, types,
    /// ranks, packed dimensions, sizes and alignments.
    ///
    /// # Safety
    /// The frame's lists of buffers are as XLA's ABI has them.
    #[inline]
    unsafe fn has_buffers(&self, ranges: &mut Ranges) -> bool {
        let plan = self.plan;
        // SAFETY: the caller's promise.
        unsafe {
            self.has_list(&self.frame.args, plan.operands.as_slice(), ranges)
                && self.has_list(&self.frame.rets, plan.results.as_slice(), ranges)
        }
    }

    /// # Safety
    /// `list` is as XLA's ABI has it.
    #[inline]
    unsafe fn has_list(&self, list: &sys::Buffers, params: &[u8], ranges: &mut Ranges) -> bool {
        if list.size != params.len() as i64 {
            return false;
        }
        if !params.is_empty() && (list.buffers.is_null() || list.types.is_null()) {
            return false;
        }
        for (i, &index) in params.iter().enumerate() {
            // SAFETY: the lists have as many entries as parameters.
            let (ty, buffer) = unsafe { (*list.types.add(i), *list.buffers.add(i)) };
            if ty != sys::BUFFER || buffer.is_null() {
                return false;
            }
            let param = &self.callable.params[usize::from(index)].ty;
            // SAFETY: an entry of this type points to an `XLA_FFI_Buffer`.
            let buffer = unsafe { &*buffer.cast::<sys::Buffer>() };
            match buffer.size_as(&param.buffer, self.batch_rank) {
                Some(size) => ranges.push(buffer.data.addr(), size),
                None => return false,
            }
            if param.buffer.packed > 0 && !buffer.has_packed(param.packed) {
                return false;
            }
        }
        true
    }

    fn check_batch(&mut self, batch: &Batch) -> Result<()> {
        let rank = self.batch_rank;
        let first = self.result_params().next().map(|(_, buffer)| buffer);
        self.sizes = first.map_or(&[], |first| &first.dims()[..rank]);
        let wrong = |param: &Param, leading: &[i64]| {
            Error::invalid_argument(format!(
                "parameter `{}`: its batch axes are {leading:?}, which does not go with a batch of \
                 {:?}",
                param.name, self.sizes
            ))
        };
        for (param, buffer) in self.result_params() {
            let leading = &buffer.dims()[..rank];
            if leading != self.sizes {
                return Err(wrong(param, leading));
            }
        }
        for (operand, (param, buffer)) in self.operand_params().enumerate() {
            let leading = &buffer.dims()[..rank];
            if param.in_out && !batch.has_all(operand) {
                return Err(Error::invalid_argument(format!(
                    "parameter `{}`: an in-out must have all batch axes",
                    param.name
                )));
            }
            if !batch.matches(operand, leading, self.sizes) {
                return Err(wrong(param, leading));
            }
        }
        Ok(())
    }

    #[inline]
    fn check_shapes(&self) -> Result<()> {
        let outputs_given = self.attrs().text(self.plan.output_dims)? == b"call";
        if self.plan.has_dims || self.plan.operands.as_slice().is_empty() {
            return dims::check(self.callable, self, outputs_given);
        }
        if outputs_given {
            return Ok(());
        }
        // The rule of most callables: outputs have the first array's shape.
        let expected = self.operand(0);
        for result in 0..self.plan.results.as_slice().len() {
            if self.plan.in_outs[result].is_none() && self.result(result) != expected {
                return dims::check(self.callable, self, false);
            }
        }
        Ok(())
    }

    /// A result whose memory is not its own, and what overlaps it: an operand, or a result
    /// numbered after all operands.
    ///
    /// A mutable view must be the only one of its memory. An in-out's own operand may be
    /// anywhere: it is never viewed.
    #[inline]
    fn overlap(&self, ranges: &Ranges) -> Option<(usize, usize)> {
        let ranges = ranges.as_slice();
        let num_operands = self.plan.operands.as_slice().len();
        let results = ranges.get(num_operands..)?;
        for (result, &(start, end)) in results.iter().enumerate() {
            for (other, &(other_start, other_end)) in ranges.iter().enumerate() {
                if start.max(other_start) < end.min(other_end)
                    && other != num_operands + result
                    && self.plan.in_outs[result].map(usize::from) != Some(other)
                {
                    return Some((result, other));
                }
            }
        }
        None
    }

    /// Copies in-outs that XLA did not alias.
    fn copy_in_outs(&self) -> Result<()> {
        for (result, (param, to)) in self.result_params().enumerate() {
            let Some(source) = self.plan.in_outs[result] else {
                continue;
            };
            let from = self.operand_buffer(usize::from(source));
            if from.dims() != to.dims() {
                return Err(Error::invalid_argument(format!(
                    "parameter `{}`: an in-out's result must have its shape {:?}, got {:?}",
                    param.name,
                    from.dims(),
                    to.dims()
                )));
            }
            let size = to.size_as(&param.ty.buffer, self.batch_rank).unwrap_or(0);
            if from.data != to.data && size > 0 {
                // SAFETY: both buffers were checked to be of this size and not null; `copy`
                // allows them to overlap.
                unsafe { ptr::copy(from.data.cast::<u8>(), to.data.cast(), size) };
            }
        }
        Ok(())
    }
}

impl Shapes for Call<'_> {
    #[inline]
    fn operand(&self, index: usize) -> &[i64] {
        let param = self.param(self.plan.operands.as_slice()[index]);
        self.own_dims(self.operand_buffer(index), param.ty.packed.len())
    }

    #[inline]
    fn result(&self, index: usize) -> &[i64] {
        let param = self.param(self.plan.results.as_slice()[index]);
        self.own_dims(self.result_buffer(index), param.ty.packed.len())
    }

    fn number(&self, param: usize) -> Result<i64> {
        self.attrs().number(slot(self.callable.params, param))
    }
}

impl sys::Buffer {
    #[inline]
    pub(super) fn dims(&self) -> &[i64] {
        if self.rank <= 0 || self.dims.is_null() {
            // Without dimensions the pointer may be anything.
            return &[];
        }
        // SAFETY: XLA's buffers have `rank` dimensions.
        unsafe { std::slice::from_raw_parts(self.dims, self.rank as usize) }
    }

    pub(super) fn dtype(&self) -> Option<crate::DataType> {
        crate::DataType::from_xla(self.dtype)
    }

    /// The size in bytes, if this is a buffer of the type with that many batch axes in front,
    /// of a size that memory can have, and its data is there and aligned.
    #[inline]
    pub(super) fn size_as(&self, ty: &BufferType, batch_rank: usize) -> Option<usize> {
        let dims = self.dims();
        let rank = batch_rank + usize::from(ty.rank);
        if self.dtype != ty.dtype || self.rank != rank as i64 || dims.len() != rank {
            return None;
        }
        let size = size_in_bytes(usize::from(ty.size), dims)?;
        let address = self.data.addr();
        if size > 0 && (address == 0 || address & usize::from(ty.align_mask) != 0) {
            return None;
        }
        Some(size)
    }

    /// Whether the last dimensions are those packed in an element.
    pub(super) fn has_packed(&self, packed: &[usize]) -> bool {
        let dims = self.dims().iter().rev();
        dims.zip(packed.iter().rev())
            .all(|(&dim, &packed)| dim == packed as i64)
    }
}

/// None for negative dimensions, and for sizes that no allocation can have.
#[inline]
pub(super) fn size_in_bytes(scalar: usize, dims: &[i64]) -> Option<usize> {
    let mut size = scalar as u64;
    let mut is_wrong = false;
    let mut is_empty = false;
    for &dim in dims {
        is_empty |= dim == 0;
        let (product, overflows) = size.overflowing_mul(dim.max(1) as u64);
        is_wrong |= overflows || dim < 0;
        size = product;
    }
    if is_wrong || size > isize::MAX as u64 {
        return None;
    }
    Some(if is_empty { 0 } else { size as usize })
}

/// The addresses that the operands take, then those of the results. Only what is used is
/// initialised: all of it would cost more than the checks of a call.
struct Ranges {
    len: usize,
    ranges: [MaybeUninit<(usize, usize)>; 2 * crate::plan::MAX_PARAMS],
}

impl Ranges {
    #[inline]
    fn new() -> Ranges {
        Ranges {
            len: 0,
            ranges: [const { MaybeUninit::uninit() }; 2 * crate::plan::MAX_PARAMS],
        }
    }

    #[inline]
    fn push(&mut self, start: usize, size: usize) {
        self.ranges[self.len].write((start, start.saturating_add(size)));
        self.len += 1;
    }

    #[inline]
    fn as_slice(&self) -> &[(usize, usize)] {
        // SAFETY: the first `len` entries were written.
        unsafe { self.ranges[..self.len].assume_init_ref() }
    }
}
