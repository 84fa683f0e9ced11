//! A call: the buffers of a frame, checked against the callable's description.
//!
//! What runs in every call only says yes or no; `explain` finds the words for a no.

use super::api::Api;
use super::attrs::{Attrs, changed};
use super::buffer::Ranges;
use super::host_call::HostCall;
use super::known::Known;
use super::place::Place;
use super::state::{self, CallSite};
use super::sys;
use super::values::Values;
use crate::cpu::Context;
use crate::dims::{self, Shapes};
use crate::error::{Error, Result};
use crate::plan::{Plan, attr_position};
use crate::registry::Registration;
use crate::signature::{Callable, Param};
use std::ptr;

/// One execution of a call site, after its checks.
pub struct Call<'a> {
    pub(super) registration: &'static Registration,
    pub(super) frame: &'a sys::CallFrame,
    /// Only fetched for calls that need it: with attributes of our own, or with static
    /// attributes that it keeps.
    pub(super) site: Option<&'a CallSite>,
    /// How many attributes of the call are our own.
    num_own_attrs: usize,
    pub(super) context: Context,
    pub(super) place: Place<'a>,
    /// The number of batch axes.
    pub(super) batch_rank: usize,
    /// The batch sizes, outermost first.
    pub(super) sizes: &'a [i64],
    /// The batch element that the body runs for.
    pub(super) element: usize,
    /// While a body runs, the values of its parameters; null before.
    pub(super) values: *const Values,
}

impl<'a> Call<'a> {
    /// A call that is still to be checked.
    ///
    /// # Safety
    /// `frame` is the frame of a running EXECUTE call of the callable, with an API table, with
    /// its buffers at `place`. Nothing but [`Call::check`] is done before that succeeds.
    #[inline]
    pub(super) unsafe fn new(
        registration: &'static Registration,
        frame: &'a sys::CallFrame,
        place: Place<'a>,
    ) -> Call<'a> {
        Call {
            registration,
            frame,
            site: None,
            num_own_attrs: 0,
            // SAFETY: the context is used during this call only.
            context: Context::new(unsafe { HostCall::new(frame.api, frame.ctx) }),
            place,
            batch_rank: 0,
            sizes: &[],
            element: 0,
            values: ptr::null(),
        }
    }

    /// A call whose values are known.
    ///
    /// # Safety
    /// As for `new`; and the values are those of the frame, of all parameters.
    #[inline]
    pub(super) unsafe fn of_values(
        registration: &'static Registration,
        frame: &'a sys::CallFrame,
        place: Place<'a>,
        values: &'a Values,
    ) -> Call<'a> {
        // SAFETY: the caller's promise.
        let mut call = unsafe { Call::new(registration, frame, place) };
        call.values = values;
        call
    }

    /// What a state is built from: the static attributes of a call site, and no buffers.
    ///
    /// # Safety
    /// `frame` is the frame of a running INSTANTIATE or INITIALIZE call of the callable, with
    /// an API table, and `site` was decoded from its attributes.
    pub(super) unsafe fn for_state(
        registration: &'static Registration,
        frame: &'a sys::CallFrame,
        place: Place<'a>,
        site: &'a CallSite,
    ) -> Call<'a> {
        // SAFETY: static attributes, and on a GPU the context, are all that is looked at.
        let mut call = unsafe { Call::new(registration, frame, place) };
        call.site = Some(site);
        call.num_own_attrs = site.num_own_attrs();
        call
    }

    #[inline]
    pub(super) fn callable(&self) -> &'static Callable {
        self.registration.callable
    }

    #[inline]
    pub(super) fn plan(&self) -> &'static Plan {
        &self.registration.plan
    }

    /// Checks any frame and, where XLA did not alias an in-out, copies it to its result.
    #[inline]
    pub(super) fn check(&mut self) -> Result<()> {
        self.check_frame(&mut Ranges::new())?;
        if self.plan().has_in_outs {
            self.copy_in_outs()?;
        }
        Ok(())
    }

    /// Checks any frame, and tells where its buffers are.
    #[inline]
    pub(super) fn check_frame(&mut self, ranges: &mut Ranges) -> Result<()> {
        let plan = self.plan();
        // SAFETY: `new`'s promise.
        let api = unsafe { Api::new(self.frame.api)? };
        let num_attrs = self.attrs().len();
        self.num_own_attrs = num_attrs
            .checked_sub(plan.num_statics())
            .ok_or_else(changed)?;
        let needs_site = self.num_own_attrs > 0 || plan.has_kept || self.place.is_on_gpu();
        if needs_site && self.site.is_none() {
            // SAFETY: this is the running call's context.
            self.site = Some(unsafe { state::get(api, self.frame.ctx)? });
        }
        let num_own_attrs = self.site.map_or(0, CallSite::num_own_attrs);
        if num_own_attrs != self.num_own_attrs {
            return Err(changed());
        }
        self.batch_rank = self.site.map_or(0, |site| site.batch.rank());
        let known = self.site.and_then(|site| site.known.get());
        // SAFETY: the frame is XLA's.
        if known.is_some_and(|known| unsafe { known.is_of(self.frame, ranges) }) {
            self.sizes = self.first_sizes();
        } else {
            self.check_shapes(ranges)?;
        }
        if let Some((result, other)) = self.overlap(ranges) {
            return Err(self.explain_overlap(result, other));
        }
        Ok(())
    }

    /// Checks everything but where the buffers are, and notes that at the call site.
    fn check_shapes(&mut self, ranges: &mut Ranges) -> Result<()> {
        // SAFETY: the frame is XLA's.
        if !unsafe { self.has_buffers(ranges) } {
            return Err(self.explain_buffers());
        }
        let batch = self.site.map(|site| &site.batch);
        if let Some(batch) = batch.filter(|batch| batch.rank() > 0) {
            self.sizes = self.first_sizes();
            self.check_batch(batch)?;
        }
        let outputs_given = self.site.is_some_and(|site| site.outputs_given);
        dims::check(self.callable(), self, outputs_given)?;
        if self.plan().has_in_outs {
            self.check_in_outs()?;
        }
        if let Some(site) = self.site {
            site.known.get_or_init(|| Known::of(self));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn attrs(&self) -> Attrs<'a> {
        // SAFETY: the frame is XLA's.
        unsafe { Attrs::new(&self.frame.attrs) }
    }

    /// The slot of a parameter.
    #[inline]
    pub(super) fn slot(&self, index: usize) -> u8 {
        self.plan().slot(index)
    }

    /// The number among the static attributes with this slot.
    #[inline]
    pub(super) fn number_at(&self, slot: u8) -> Option<i64> {
        self.attrs().number(attr_position(slot, self.num_own_attrs))
    }

    /// # Safety
    /// `has_buffers` was true, and the plan has more operands than `index`.
    #[inline]
    pub(super) unsafe fn operand_buffer(&self, index: usize) -> &'a sys::Buffer {
        debug_assert!(index < self.plan().num_operands());
        // SAFETY: there are as many buffers, none of them null.
        unsafe { &*(*self.frame.args.buffers.add(index)).cast() }
    }

    /// # Safety
    /// `has_buffers` was true, and the plan has more results than `index`.
    #[inline]
    pub(super) unsafe fn result_buffer(&self, index: usize) -> &'a sys::Buffer {
        debug_assert!(index < self.plan().num_all_results());
        // SAFETY: there are as many buffers, none of them null.
        unsafe { &*(*self.frame.rets.buffers.add(index)).cast() }
    }

    /// The parameters of the operands with their buffers.
    pub(super) fn operand_params(&self) -> impl Iterator<Item = (&'static Param, &'a sys::Buffer)> {
        let params = self.callable().operands().enumerate();
        // SAFETY: only called after `has_buffers`, and there are as many operands.
        params.map(|(i, (_, param))| (param, unsafe { self.operand_buffer(i) }))
    }

    /// The parameters of the results, then of scratch, with their buffers.
    pub(super) fn result_params(&self) -> impl Iterator<Item = (&'static Param, &'a sys::Buffer)> {
        let params = self.callable().all_results().enumerate();
        // SAFETY: only called after `has_buffers`, and there are as many results.
        params.map(|(i, (_, param))| (param, unsafe { self.result_buffer(i) }))
    }

    /// The own dimensions of a buffer: without its batch axes and packed dimensions.
    #[inline]
    fn own_dims(buffer: &'a sys::Buffer, param: &Param, batch_rank: usize) -> &'a [i64] {
        let (dims, packed) = (buffer.dims(), param.ty.packed.len());
        if batch_rank == 0 && packed == 0 {
            return dims;
        }
        &dims[batch_rank..dims.len() - packed]
    }

    /// Whether the frame has the buffers of the callable's parameters: their number, types,
    /// ranks, packed dimensions, sizes and alignments.
    ///
    /// # Safety
    /// The frame's lists of buffers are as XLA's ABI has them.
    #[inline]
    unsafe fn has_buffers(&self, ranges: &mut Ranges) -> bool {
        let plan = self.plan();
        // SAFETY: the caller's promise.
        unsafe {
            let (operands, results) = (self.callable().operands(), self.callable().all_results());
            let operand_rank = |operand| self.operand_rank(operand);
            let result_rank = |result| self.result_rank(result);
            let (args, rets) = (&self.frame.args, &self.frame.rets);
            has_list(args, plan.num_operands(), operands, operand_rank, ranges)
                && has_list(rets, plan.num_all_results(), results, result_rank, ranges)
        }
    }

    /// A result whose memory is not its own, and what overlaps it: an operand, or a result
    /// numbered after all operands.
    ///
    /// A mutable view must be the only one of its memory. An in-out's own operand may be
    /// anywhere: it is never viewed.
    #[inline]
    fn overlap(&self, ranges: &Ranges) -> Option<(usize, usize)> {
        let num_operands = self.plan().num_operands();
        let mut sources = self.callable().in_outs();
        for own in num_operands..ranges.len {
            let (result, source) = (own - num_operands, sources.next().flatten());
            let mut others = 0..own;
            if let Some(other) =
                others.find(|&other| ranges.overlap(own, other) && source != Some(other))
            {
                return Some((result, other));
            }
        }
        None
    }

    /// The in-outs: parameter, operand, result.
    fn in_outs(&self) -> impl Iterator<Item = (&'static Param, &'a sys::Buffer, &'a sys::Buffer)> {
        let sources = self.callable().in_outs();
        self.result_params()
            .zip(sources)
            .filter_map(|((param, to), source)| {
                // SAFETY: only called after `has_buffers`, and in-outs are operands.
                Some((param, unsafe { self.operand_buffer(source?) }, to))
            })
    }

    /// Checks that in-outs keep their shapes: what is copied has the size of the result.
    fn check_in_outs(&self) -> Result<()> {
        for (param, from, to) in self.in_outs() {
            if from.dims() != to.dims() {
                return Err(Error::invalid_argument(format!(
                    "parameter `{}`: an in-out's result must have its shape {:?}, got {:?}",
                    param.name,
                    from.dims(),
                    to.dims()
                )));
            }
        }
        Ok(())
    }

    /// Copies in-outs that XLA did not alias.
    fn copy_in_outs(&self) -> Result<()> {
        for (param, from, to) in self.in_outs() {
            let size = to.size_as(&param.ty.buffer, self.batch_rank).unwrap_or(0);
            if from.data != to.data && size > 0 {
                // SAFETY: both buffers were checked to be of this size and not null.
                unsafe { self.place.copy(from.data.cast(), to.data.cast(), size)? };
            }
        }
        Ok(())
    }
}

/// # Safety
/// `list` is as XLA's ABI has it.
#[inline]
unsafe fn has_list(
    list: &sys::Buffers,
    len: usize,
    params: impl Iterator<Item = (usize, &'static Param)>,
    batch_rank: impl Fn(usize) -> usize,
    ranges: &mut Ranges,
) -> bool {
    if list.size != len as i64 || list.buffers.is_null() || list.types.is_null() {
        return list.size == 0 && len == 0;
    }
    let first = ranges.len;
    for (i, (_, param)) in params.enumerate() {
        // SAFETY: the lists have as many entries as parameters.
        let (ty, buffer) = unsafe { (*list.types.add(i), *list.buffers.add(i)) };
        if ty != sys::BUFFER || buffer.is_null() {
            return false;
        }
        let param = &param.ty;
        // SAFETY: an entry of this type points to an `XLA_FFI_Buffer`.
        let buffer = unsafe { &*buffer.cast::<sys::Buffer>() };
        let Some(size) = buffer.size_as(&param.buffer, batch_rank(i)) else {
            return false;
        };
        if param.buffer.packed > 0 && !buffer.has_packed(param.packed) {
            return false;
        }
        ranges.set(first + i, buffer.data.addr(), size);
    }
    ranges.len = first + len;
    true
}

impl Shapes for Call<'_> {
    fn operand(&self, index: usize) -> &[i64] {
        let param = self.callable().operands().nth(index);
        param.map_or(&[], |(_, param)| {
            // SAFETY: shapes are looked at after `has_buffers`; there is this operand.
            let buffer = unsafe { self.operand_buffer(index) };
            Self::own_dims(buffer, param, self.operand_rank(index))
        })
    }

    fn result(&self, index: usize) -> &[i64] {
        let param = self.callable().all_results().nth(index);
        param.map_or(&[], |(_, param)| {
            // SAFETY: shapes are looked at after `has_buffers`; there is this result.
            let buffer = unsafe { self.result_buffer(index) };
            Self::own_dims(buffer, param, self.result_rank(index))
        })
    }

    #[inline]
    fn scratch(&self, index: usize) -> &[i64] {
        self.result(self.plan().num_results() + index)
    }

    fn number(&self, param: usize) -> Result<i64> {
        self.number_at(self.slot(param)).ok_or_else(changed)
    }
}
