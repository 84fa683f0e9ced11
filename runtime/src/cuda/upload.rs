//! Copies from host memory that outlive the call which makes them.

use super::capture::{graph_of, is_pinned};
use super::context::Context;
use super::driver::failed;
use crate::element::Element;
use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUgraph, CUuserObject_flags, CUuserObjectRetain_flags};
use cudarc::driver::{DevicePtrMut, DriverError, result};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

impl Context {
    /// Copies host data to the device, in order with the call's other work.
    ///
    /// The data is kept as long as a copy may read it: when the call is captured into a CUDA
    /// graph, for as long as the graph can be launched. That makes this the way to copy from
    /// the host in every graph mode; a copy by other means is refused in a capture. An
    /// `Arc<[T]>` is shared, a `Vec` is moved.
    ///
    /// ```no_run
    /// # use jax_callable::prelude::*;
    /// #[jax_callable(output_dims = 3)]
    /// fn weights(cx: &cuda::Context, mut y: cuda::ArrayMut<f32, 1>) -> Result<()> {
    ///     cx.upload(vec![0.25, 0.5, 0.25], &mut y)
    /// }
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// If `to` has another number of elements, or the driver refuses the copy.
    pub fn upload<T: Element, D: DevicePtrMut<T>>(
        &self,
        from: impl Into<Arc<[T]>>,
        to: &mut D,
    ) -> Result<()> {
        let from = from.into();
        if from.len() != to.len() {
            return Err(Error::invalid_argument(format!(
                "`upload` of {} elements into an array of {}",
                from.len(),
                to.len()
            )));
        }
        if size_of_val(&*from) == 0 {
            return Ok(());
        }
        let (address, _guard) = to.device_ptr_mut(self.stream());
        let graph = graph_of(self.stream())?;
        if let Some(graph) = graph {
            let range = from.as_ptr_range();
            give_to(graph, from.clone()).map_err(|error| failed("cannot keep an upload", error))?;
            self.own(range.start.addr()..range.end.addr());
        }
        // SAFETY: `to` has the size of `from`, which stays until it has been read: in a
        // capture the graph has it, pageable memory is read before this returns, and the
        // stream is given what is pinned.
        let copied =
            unsafe { result::memcpy_htod_async(address, &from, self.stream().cu_stream()) };
        copied.map_err(|error| failed("cannot copy from the host", error))?;
        if graph.is_none() && is_pinned(from.as_ptr().addr()) {
            self.drop_behind(from)?;
        }
        Ok(())
    }

    /// Drops a value when the stream has done its work so far.
    fn drop_behind<T: Element>(&self, value: Arc<[T]>) -> Result<()> {
        let value = Box::into_raw(Box::new(value));
        let (drop, stream) = (drop_boxed::<T>, self.stream().cu_stream());
        // SAFETY: the function takes the box, once.
        unsafe { sys::cuLaunchHostFunc(stream, Some(drop), value.cast()) }
            .result()
            .map_err(|error| {
                // Nothing tells when it is read, so it stays.
                failed("cannot keep a copied array for the stream", error)
            })
    }
}

/// Makes a graph own a value: the graph, what is instantiated from it and what contains it.
fn give_to<T: Element>(graph: CUgraph, value: Arc<[T]>) -> std::result::Result<(), DriverError> {
    let value = Box::into_raw(Box::new(value));
    let mut object = ptr::null_mut();
    // SAFETY: the function takes the box, once, when the last reference is gone.
    let created = unsafe {
        sys::cuUserObjectCreate(
            &mut object,
            value.cast(),
            Some(drop_boxed::<T>),
            1,
            CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC as u32,
        )
    };
    if let Err(error) = created.result() {
        // SAFETY: the driver has not taken the box.
        unsafe { drop_boxed::<T>(value.cast()) };
        return Err(error);
    }
    // SAFETY: the graph is alive, and gets the one reference that there is.
    let retained = unsafe {
        let flag = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE as u32;
        sys::cuGraphRetainUserObject(graph, object, 1, flag).result()
    };
    retained.inspect_err(|_| {
        // SAFETY: the graph has not taken the reference.
        unsafe { sys::cuUserObjectRelease(object, 1) };
    })
}

/// # Safety
/// `value` is a `Box<Arc<[T]>>` that nobody else has.
unsafe extern "C" fn drop_boxed<T>(value: *mut c_void) {
    // SAFETY: the caller's promise. `T` is plain data: its drop does nothing.
    drop(unsafe { Box::from_raw(value.cast::<Arc<[T]>>()) });
}
