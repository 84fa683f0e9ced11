//! Call sites: INSTANTIATE once, EXECUTE many times.

use super::buffer::size_in_bytes;
use super::host::{self, Context, Settings};
use super::host_damage::{BufferChange, Change, List};
use super::host_frame::{AttrSpec, BufferSpec, FrameSpec};
use super::host_memory::Memory;
use super::sys::{self, stage};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::registry::Handlers;
use crate::signature::Param;
use std::ffi::c_void;
use std::fmt;
use std::ptr::without_provenance_mut;

/// A call site, as an executable of XLA has one for each call in the program: what INSTANTIATE has
/// made of the static attributes, with its state and its graphs. They end when it is dropped.
///
/// ```no_run
/// use jax_callable::prelude::*;
/// use jax_callable::testing::Target;
///
/// # fn example(stream: *mut std::ffi::c_void, x: u64, y: u64) -> Result<()> {
/// let site = Target::find_cuda("saxpy")?
///     .call()
///     .value("a", 2.0_f32)
///     .input_shape("x", [1024])
///     .input_shape("y", [1024])
///     .instantiate()?;
/// assert_eq!((site.operand_sizes(), site.result_sizes()), (vec![4096; 2], vec![4096]));
/// // SAFETY: `stream` is one of device 0, on which both arrays are valid.
/// unsafe { site.execute(0, stream, &[x, y], &[y]) }
/// # }
/// # fn main() {}
/// ```
pub struct CallSite {
    handlers: Handlers,
    api: &'static sys::Api,
    context: Context,
    pub(crate) attrs: Vec<(String, AttrSpec)>,
    /// Of the operands and the results.
    pub(crate) layouts: [Vec<Layout>; 2],
    /// What is changed in the frames of EXECUTE.
    pub(crate) changes: Vec<Change>,
}

impl fmt::Debug for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("CallSite");
        text.field("attrs", &self.attrs).finish_non_exhaustive()
    }
}

impl CallSite {
    /// Runs INSTANTIATE, with the frame changed; so will be those of EXECUTE.
    pub(crate) fn new(
        handlers: Handlers,
        api_version: i32,
        attrs: Vec<(String, AttrSpec)>,
        layouts: [Vec<Layout>; 2],
        [instantiate, execute]: [Vec<Change>; 2],
    ) -> Result<CallSite> {
        let site = CallSite {
            handlers,
            api: host::table(api_version),
            context: Context::new(),
            attrs,
            layouts,
            changes: execute,
        };
        let frame = site.frame(stage::INSTANTIATE);
        // SAFETY: there are no buffers.
        unsafe { site.call(handlers.instantiate, frame, &site.context, &instantiate)? };
        Ok(site)
    }

    /// The sizes in bytes of the operands: inputs and in-outs, as they come in the signature.
    pub fn operand_sizes(&self) -> Vec<usize> {
        self.layouts[0].iter().map(Layout::size).collect()
    }

    /// The sizes in bytes of the results: in-outs and outputs as they come in the signature, then
    /// scratch.
    pub fn result_sizes(&self) -> Vec<usize> {
        self.layouts[1].iter().map(Layout::size).collect()
    }

    /// Runs INITIALIZE, where the platform has it, and EXECUTE, on a stream of a device. Any thread
    /// may, at any time. On the CPU, [`run`](CallSite::run) does it without addresses.
    ///
    /// # Errors
    /// The error that JAX would raise: the message begins with `crate.f: `.
    ///
    /// # Panics
    /// If there is not one address for each operand and result.
    ///
    /// # Safety
    /// The stream is one of the device's primary context. At the addresses are buffers of the sizes
    /// given above, which stay until the stream has done the work; those of results are written. An
    /// in-out has one address, or two that do not overlap. No two other results overlap each other
    /// or an operand. A site of a [damaged](crate::testing::Call::damaged) call needs memory for the
    /// shapes that its frames have.
    pub unsafe fn execute(
        &self,
        device_ordinal: i32,
        stream: *mut c_void,
        operands: &[u64],
        results: &[u64],
    ) -> Result<()> {
        let context = self.context.on(device_ordinal, stream);
        if let Some(initialize) = self.handlers.initialize {
            let frame = self.frame(stage::INITIALIZE);
            // SAFETY: there are no buffers.
            unsafe { self.call(initialize, frame, &context, &[])? };
        }
        let mut frame = self.frame(stage::EXECUTE);
        frame.args = specs(&self.layouts[0], operands);
        frame.rets = specs(&self.layouts[1], results);
        // SAFETY: the caller's promise.
        let outcome = unsafe { self.call(self.handlers.execute, frame, &context, &self.changes) };
        context.finish_tasks();
        outcome
    }

    /// Runs EXECUTE on the host. Buffers get the memory that changed shapes need.
    pub(crate) fn execute_on_host(
        &self,
        settings: &Settings,
        operands: &mut [HostBuffer],
        results: &mut [HostResult],
    ) -> Result<()> {
        let mut context = self
            .context
            .on(settings.device_ordinal, std::ptr::null_mut());
        context.num_threads = settings.num_threads;
        context.run_id = settings.run_id;
        let own = results.iter().filter_map(|result| match result {
            HostResult::Own(buffer) => Some(buffer),
            HostResult::Operand(_) => None,
        });
        for HostBuffer {
            dtype,
            dims,
            memory,
        } in operands.iter().chain(own)
        {
            let numel: usize = dims.iter().map(|&dim| dim as usize).product();
            assert!(
                numel * dtype.size() <= memory.size(),
                "too little memory for {dims:?}"
            );
        }
        make_room(operands, results, &self.changes);
        let changes = self.changes.iter();
        let changes = changes.filter(|change| fits(change, operands, results));
        let changes: Vec<_> = changes.cloned().collect();
        let mut frame = self.frame(stage::EXECUTE);
        frame.args = operands.iter_mut().map(HostBuffer::spec).collect();
        frame.rets = results
            .iter_mut()
            .map(|result| match result {
                HostResult::Own(buffer) => buffer.spec(),
                HostResult::Operand(index) => frame.args[*index].clone(),
            })
            .collect();
        // SAFETY: each buffer's memory is large enough for its shape, whatever was changed, and it
        // is borrowed for as long as this runs, late tasks included.
        let outcome = unsafe { self.call(self.handlers.execute, frame, &context, &changes) };
        context.finish_tasks();
        outcome
    }

    /// Whether these are its handlers.
    pub(crate) fn is_of(&self, handlers: Handlers) -> bool {
        // Those of two callables may be merged if their code is the same.
        std::ptr::fn_addr_eq(self.handlers.execute, handlers.execute)
    }

    fn frame(&self, stage: i32) -> FrameSpec {
        let mut frame = FrameSpec::new(stage);
        frame.attrs = self.attrs.clone();
        frame
    }

    /// Calls a handler with a changed frame.
    ///
    /// # Safety
    /// There is memory for each shape that the frame has after the changes, which may be read,
    /// and for `rets` written, during the call.
    unsafe fn call(
        &self,
        handler: sys::Handler,
        mut frame: FrameSpec,
        context: &Context,
        changes: &[Change],
    ) -> Result<()> {
        changes.iter().for_each(|change| change.to_spec(&mut frame));
        let table = changes.iter().find_map(Change::table);
        let table = table.unwrap_or(self.api);
        let num_attrs = frame.attrs.len();
        let error = frame.with_frame(table, context, |frame| {
            for change in changes {
                // SAFETY: the frame is the one that is lent.
                unsafe { change.to_frame(frame, num_attrs) };
            }
            // SAFETY: the frame is complete but for what was changed, and the caller promises
            // sound buffers.
            unsafe { handler(frame) }
        });
        // SAFETY: the handler ran with a table of `host`.
        unsafe { host::take_error(error) }.map_or(Ok(()), |failure| Err(Error::from(failure)))
    }
}

/// A buffer with its memory.
pub(crate) struct HostBuffer {
    pub(crate) dtype: DataType,
    pub(crate) dims: Vec<i64>,
    pub(crate) memory: Memory,
}

/// Where a result is.
pub(crate) enum HostResult {
    Own(HostBuffer),
    /// In the buffer of this operand.
    Operand(usize),
}

impl HostBuffer {
    fn spec(&mut self) -> BufferSpec {
        BufferSpec {
            dtype: self.dtype as i32,
            dims: self.dims.clone(),
            data: self.memory.as_mut_ptr(),
        }
    }
}

/// More than any changed shape that a handler could take for possible.
const MAX_ROOM: usize = 1 << 24;

/// Gives buffers whose dimensions change the memory for their new shapes, whichever of those a
/// frame then has. Shapes that overflow get none.
fn make_room(operands: &mut [HostBuffer], results: &mut [HostResult], changes: &[Change]) {
    for list in [List::Args, List::Rets] {
        let len = if list == List::Args {
            operands.len()
        } else {
            results.len()
        };
        for index in 0..len {
            let operand = match (list, results.get(index)) {
                (List::Args, _) => Some(index),
                (_, Some(HostResult::Operand(operand))) => Some(*operand),
                _ => None,
            };
            let shares =
                |r: &HostResult| matches!(r, HostResult::Operand(o) if Some(*o) == operand);
            let is_shared = results.iter().any(shares);
            let buffer = match (operand, results.get_mut(index)) {
                (Some(operand), _) => &mut operands[operand],
                (None, Some(HostResult::Own(buffer))) => buffer,
                (None, _) => continue,
            };
            let mut dims = buffer.dims.clone();
            for change in changes {
                if let Change::Buffer(l, i, BufferChange::Dim(axis, size)) = *change
                    && (l, i) == (list, index)
                {
                    dims[axis] = size;
                }
            }
            if dims == buffer.dims {
                continue;
            }
            if !is_shared {
                buffer.dims.clone_from(&dims);
            }
            let mut sizes = dims.iter().map(|&dim| usize::try_from(dim.max(1)).ok());
            let room = sizes.try_fold(buffer.dtype.size(), |room, dim| room.checked_mul(dim?));
            match room.filter(|&room| room <= MAX_ROOM) {
                Some(room) => {
                    let least = if is_shared { buffer.memory.size() } else { 0 };
                    buffer.memory = buffer.memory.resized(room.max(least));
                }
                None => {
                    let size = size_in_bytes(buffer.dtype.size(), &dims);
                    assert!(size.is_none_or(|size| size == 0), "no memory for {dims:?}");
                }
            }
        }
    }
}

/// Whether a buffer that is put at the address of another has room there.
fn fits(change: &Change, operands: &[HostBuffer], results: &[HostResult]) -> bool {
    let size = |list, index: usize| {
        let operand = |index: usize| operands.get(index).map(|buffer| buffer.memory.size());
        match (list, results.get(index)) {
            (List::Args, _) => operand(index),
            (List::Rets, Some(HostResult::Own(buffer))) => Some(buffer.memory.size()),
            (List::Rets, Some(HostResult::Operand(index))) => operand(*index),
            (List::Rets, None) => None,
        }
    };
    match *change {
        Change::Buffer(list, index, BufferChange::Over(other, place)) => {
            size(list, index) <= size(other, place)
        }
        _ => true,
    }
}

/// A buffer of a call.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) dtype: DataType,
    pub(crate) dims: Vec<i64>,
    /// Of a result that is an in-out's.
    pub(crate) operand: Option<usize>,
}

impl Layout {
    pub(crate) fn new(param: &Param, dims: Vec<i64>, operand: Option<usize>) -> Layout {
        Layout {
            dtype: param.ty.dtype.expect("an array has an element type"),
            dims,
            operand,
        }
    }

    /// In bytes.
    pub(crate) fn size(&self) -> usize {
        let dims = self.dims.iter().map(|&dim| dim as usize);
        dims.product::<usize>() * self.dtype.size()
    }

    /// A buffer with these bytes.
    pub(crate) fn buffer(&self, memory: Memory) -> HostBuffer {
        HostBuffer {
            memory,
            dtype: self.dtype,
            dims: self.dims.clone(),
        }
    }

    pub(crate) fn unwritten(&self) -> HostBuffer {
        self.buffer(Memory::unwritten(self.size()))
    }
}

fn specs(layouts: &[Layout], addresses: &[u64]) -> Vec<BufferSpec> {
    assert_eq!(
        layouts.len(),
        addresses.len(),
        "one address for each buffer"
    );
    let pairs = layouts.iter().zip(addresses);
    pairs
        .map(|(layout, &address)| BufferSpec {
            dtype: layout.dtype as i32,
            dims: layout.dims.clone(),
            data: without_provenance_mut(address as usize),
        })
        .collect()
}
