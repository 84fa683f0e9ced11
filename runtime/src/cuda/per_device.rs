//! State of a call site on one device.

use crate::error::{Error, Result};
use crate::state::{Holder, IntoState};
use std::ops::Deref;

/// State of a call site on one device: what `state = Constructor(..)` of the attribute has
/// built there.
///
/// It is like [`State`](crate::State), but built once for each device that the program runs
/// on, before its first call there and outside of all captures. So the constructor may also
/// use the context of the function, for what belongs to a device: memory, streams, library
/// handles. The work that it queues on [`Context::stream`](super::Context::stream) is waited
/// for. That stream is XLA's: what the state keeps needs one of its own, and is refused on XLA's.
///
/// ```no_run
/// use jax_callable::cudarc::driver::CudaSlice;
/// use jax_callable::prelude::*;
///
/// struct Table(CudaSlice<f32>);
///
/// impl Table {
///     fn new(cx: &cuda::Context, size: u32) -> Result<Table> {
///         let values: Vec<f32> = (0..size).map(|i| (i as f32).sin()).collect();
///         let stream = cx.device().new_stream()?;
///         let table = stream.clone_htod(&values)?;
///         stream.synchronize()?;
///         Ok(Table(table))
///     }
/// }
///
/// /// y <- the first values of the table.
/// #[jax_callable(state = Table::new(cx, size), output_dims = size)]
/// fn sines(
///     cx: &cuda::Context,
///     size: u32,
///     table: &cuda::PerDevice<Table>,
///     mut y: cuda::ArrayMut<f32, 1>,
/// ) -> Result<()> {
///     let _ = size;
///     Ok(cx.stream().memcpy_dtod(&table.0, &mut y)?)
/// }
/// # fn main() {}
/// ```
///
/// It is dropped with the program, with the device's context current.
#[derive(Debug)]
pub struct PerDevice<S>(S);

impl<S> Deref for PerDevice<S> {
    type Target = S;
    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: Send + Sync + 'static> Holder for PerDevice<S> {}

#[diagnostic::do_not_recommend]
impl<S> IntoState<PerDevice<S>> for S {
    fn into_state(self) -> Result<PerDevice<S>> {
        Ok(PerDevice(self))
    }
}

#[diagnostic::do_not_recommend]
impl<S, E: Into<Error>> IntoState<PerDevice<S>> for std::result::Result<S, E> {
    fn into_state(self) -> Result<PerDevice<S>> {
        self.map(PerDevice).map_err(Into::into)
    }
}
