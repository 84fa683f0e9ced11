//! Calls in a graph mode of our own.

use super::api::Api;
use super::buffer::Ranges;
use super::cuda_call::waits_for_each_call;
use super::entry::{check_and_run, contain_panic};
use super::frame::Call;
use super::place::Place;
use super::relocate::Relocated;
use super::{state, sys};
use crate::check::is_scratch;
use crate::cuda::{Context, Device};
use crate::error::{Error, Result};
use crate::graph::staging::{Array, Staging};
use crate::registry::Registration;
use crate::signature::GraphMode;

/// Batches of more elements than this are looped over without a graph: their graphs would be
/// larger than they are worth.
const MAX_LOOP: usize = 1 << 12;

/// Runs a call by a graph of the call site.
///
/// # Safety
/// `frame` is the frame of a running EXECUTE call, with an API table, of the callable.
pub(super) unsafe fn execute(
    frame: &sys::CallFrame,
    registration: &'static Registration,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let api = unsafe { Api::new(frame.api)? };
    // SAFETY: this is the running call's context.
    let (site, ordinal, stream) = unsafe {
        let site = state::get(api, frame.ctx)?;
        (site, api.device_ordinal(frame.ctx)?, api.stream(frame.ctx)?)
    };
    // Only checked: it runs elsewhere.
    // SAFETY: the caller's promise.
    let mut call = unsafe { Call::new(registration, frame, Place::HOST) };
    call.site = Some(site);
    let mut ranges = Ranges::new();
    call.check_frame(&mut ranges)?;
    let mut graphs = site.graphs.on(ordinal)?.lock();
    if call.batch_rank > 0 {
        graphs.counters().looped_batches.add(1);
    }

    let is_small = call.batch_rank == 0 || call.num_elements() <= MAX_LOOP;
    let has_run = is_small && {
        let mut run = |context: &Context, seen: &[u64]| {
            // A body that panics at made-up addresses refuses them: that is not the call's error.
            // SAFETY: the frame was checked, and the addresses are those of its buffers, or
            // others that stand for them in a capture.
            let result = contain_panic(|| unsafe { run_at(frame, registration, context, seen) });
            result.unwrap_or_else(|| Err(Error::internal("panicked")))
        };
        let stage = || staging(&call);
        // SAFETY: the stream is XLA's for the device, on which it runs no capture in this mode; a
        // call site has one shape.
        unsafe { graphs.call(stream, ranges.starts(), stage, &mut run)? }
    };
    let context = || {
        let device = Device::current(ordinal)?;
        // SAFETY: the stream is XLA's for this device, and the context is used during the call.
        Ok::<_, Error>(unsafe { device.on_stream(stream) })
    };
    if !has_run {
        graphs.counters().ungraphed_calls.add(1);
        drop(graphs);
        let context = context()?;
        // SAFETY: the caller's promise.
        unsafe { check_and_run(registration, frame, Place::Cuda(&context))? };
        context.check_kept()?;
    }
    if waits_for_each_call() {
        context()?.synchronize()?;
    }
    Ok(())
}

/// Runs the body with its buffers at other addresses.
///
/// # Safety
/// The frame was checked against the callable, and there is an address for each of its
/// buffers.
unsafe fn run_at(
    frame: &sys::CallFrame,
    registration: &'static Registration,
    context: &Context,
    seen: &[u64],
) -> Result<()> {
    let num_operands = registration.plan.num_operands();
    let mut seen = seen.to_vec();
    for (result, source) in registration.callable.in_outs().enumerate() {
        if let Some(operand) = source {
            // A body sees an in-out at its result only; it is there already.
            seen[operand] = seen[num_operands + result];
        }
    }
    // SAFETY: the caller's promise.
    let relocated = unsafe { Relocated::new(frame, &seen) };
    let frame = relocated.frame();
    // SAFETY: the frame is that of the running call but for its addresses.
    unsafe { check_and_run(registration, frame, Place::Cuda(context)) }
}

/// What is staged at a call site, by its mode and the sizes of its arrays.
fn staging(call: &Call<'_>) -> Result<Staging> {
    let callable = call.callable();
    let is_staged = callable.graph_mode != GraphMode::Warp;
    let stages =
        |names: Option<&[&str]>, name| is_staged && names.is_none_or(|names| names.contains(&name));
    let mut arrays = Vec::new();
    for (index, param) in callable.params.iter().enumerate() {
        let operand = callable.operands().position(|(i, _)| i == index);
        let result = callable.all_results().position(|(i, _)| i == index);
        // SAFETY: the call was checked, and the plan has these buffers.
        let (buffer, batch_rank) = unsafe {
            match (operand, result) {
                (_, Some(result)) => (call.result_buffer(result), call.result_rank(result)),
                (Some(operand), None) => (call.operand_buffer(operand), call.operand_rank(operand)),
                (None, None) => continue,
            }
        };
        let size = buffer.size_as(&param.ty.buffer, batch_rank).unwrap_or(0);
        // An input has its own size: some are shared by the whole batch.
        arrays.push(Array {
            operand,
            result: result.map(|result| call.plan().num_operands() + result),
            size: size as u64,
            stage_in: stages(callable.stage_in, param.name),
            stage_out: stages(callable.stage_out, param.name),
            is_scratch: is_scratch(param),
        });
    }
    Staging::new(&arrays)
}
