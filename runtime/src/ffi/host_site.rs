//! Call sites: INSTANTIATE once, EXECUTE many times.

use super::host::{self, Context};
use super::host_frame::{AttrSpec, BufferSpec, FrameSpec, HostBuffer, Memory};
use super::sys::{self, stage};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::registry::Handlers;
use crate::signature::Param;
use std::ffi::c_void;
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
    attrs: Vec<(String, AttrSpec)>,
    operands: Vec<Layout>,
    results: Vec<Layout>,
}

impl CallSite {
    pub(crate) fn new(
        handlers: Handlers,
        api_version: i32,
        attrs: Vec<(String, AttrSpec)>,
        operands: Vec<Layout>,
        results: Vec<Layout>,
    ) -> Result<CallSite> {
        let site = CallSite {
            handlers,
            api: host::table(api_version),
            context: Context::new(),
            attrs,
            operands,
            results,
        };
        let mut frame = site.frame(stage::INSTANTIATE);
        // SAFETY: there are no buffers.
        unsafe { frame.call(handlers.instantiate, site.api, &site.context) }
            .map_err(Error::from)?;
        Ok(site)
    }

    /// The sizes in bytes of the operands: inputs and in-outs, as they come in the signature.
    pub fn operand_sizes(&self) -> Vec<usize> {
        self.operands.iter().map(Layout::size).collect()
    }

    /// The sizes in bytes of the results: in-outs and outputs as they come in the signature, then
    /// scratch.
    pub fn result_sizes(&self) -> Vec<usize> {
        self.results.iter().map(Layout::size).collect()
    }

    /// Runs INITIALIZE, where the platform has it, and EXECUTE, on a stream of a device. Any thread
    /// may, at any time.
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
    /// or an operand.
    pub unsafe fn execute(
        &self,
        device_ordinal: i32,
        stream: *mut c_void,
        operands: &[u64],
        results: &[u64],
    ) -> Result<()> {
        let context = self.context.on(device_ordinal, stream);
        let handlers = self.handlers;
        if let Some(initialize) = handlers.initialize {
            // SAFETY: there are no buffers.
            unsafe {
                self.frame(stage::INITIALIZE)
                    .call(initialize, self.api, &context)
            }
            .map_err(Error::from)?;
        }
        let mut frame = self.frame(stage::EXECUTE);
        frame.args = specs(&self.operands, operands);
        frame.rets = specs(&self.results, results);
        // SAFETY: the caller's promise.
        let outcome = unsafe { frame.call(handlers.execute, self.api, &context) };
        context.finish_tasks();
        outcome.map_err(Error::from)
    }

    fn frame(&self, stage: i32) -> FrameSpec {
        let mut frame = FrameSpec::new(stage);
        frame.attrs = self.attrs.clone();
        frame
    }
}

/// A buffer of a call.
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

    pub(crate) fn buffer(self, memory: Option<&Memory>) -> HostBuffer {
        let unwritten = || Memory::unwritten(self.size());
        HostBuffer {
            memory: memory.map_or_else(unwritten, Memory::clone),
            dtype: self.dtype,
            dims: self.dims,
        }
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
