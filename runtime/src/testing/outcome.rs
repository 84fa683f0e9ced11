//! What calls have written.

use crate::dtype::DataType;
use crate::element::Element;
use crate::ffi::host_memory::Memory;
use crate::signature::{Callable, Kind, Param};
use std::collections::HashMap;
use std::fmt;

/// What a call has written. Its `Debug` shows the shapes.
pub struct Outcome {
    pub(super) callable: &'static Callable,
    pub(super) results: HashMap<&'static str, (Vec<i64>, Memory)>,
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let results = self.callable.results().map(|(_, param)| param.name);
        let mut shapes = f.debug_struct(self.callable.name);
        for name in results {
            shapes.field(name, &self.shape(name));
        }
        shapes.finish()
    }
}

impl Outcome {
    /// The elements of an in-out or output in row-major order, the whole batch's if there
    /// is one.
    ///
    /// # Panics
    /// If the callable has no such result, or one of another element type.
    #[track_caller]
    pub fn get<T: Element>(&self, name: &str) -> Vec<T> {
        let (dims, memory) = self.typed::<T>(name);
        memory.to_vec(dims.iter().product())
    }

    /// The same as an array of `ndarray`, with batch axes and without packed dimensions: those are
    /// in `T`.
    ///
    /// ```
    /// use jax_callable::ndarray::{Ix2, array};
    /// use jax_callable::prelude::*;
    /// use jax_callable::testing::Target;
    ///
    /// /// y[i] <- x[i] less its mean.
    /// #[jax_callable]
    /// fn less_mean(x: cpu::Array<f64, 2>, mut y: cpu::ArrayMut<f64, 2>) {
    ///     let mut y = y.view_mut();
    ///     y.assign(&x.view());
    ///     y.rows_mut().into_iter().for_each(|mut y| y -= y.mean().unwrap_or(0.0));
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// let x = array![[1.0, 3.0], [0.0, 4.0]];
    /// let outcome = Target::find("less_mean")?.call().input_array("x", &x).run()?;
    /// assert_eq!(outcome.array::<f64, Ix2>("y"), array![[-1.0, 1.0], [-2.0, 2.0]]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// Also if `D` has another number of dimensions.
    #[cfg(feature = "ndarray")]
    #[track_caller]
    pub fn array<T: Element, D: ndarray::Dimension>(&self, name: &str) -> ndarray::Array<T, D> {
        let (dims, memory) = self.typed::<T>(name);
        let data = memory.to_vec(dims.iter().product());
        let array = ndarray::ArrayD::from_shape_vec(dims, data).expect("as many as the shape says");
        let shape = array.shape().to_vec();
        array
            .into_dimensionality()
            .unwrap_or_else(|_| panic!("`{name}` has the shape {shape:?}, of another rank"))
    }

    /// The shape of an in-out or output as JAX sees it, with batch axes and packed
    /// dimensions.
    ///
    /// # Panics
    /// If the callable has no such result.
    #[track_caller]
    pub fn shape(&self, name: &str) -> Vec<usize> {
        let (_, (dims, _)) = self.result(name);
        dims.iter().map(|&dim| dim as usize).collect()
    }

    /// Whether both have the same shapes and bytes.
    pub(super) fn is_same(&self, other: &Outcome) -> bool {
        let mut results = self.callable.results().map(|(_, param)| param.name);
        results.all(|name| {
            self.shape(name) == other.shape(name) && self.bytes(name) == other.bytes(name)
        })
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        let (param, (_, memory)) = self.result(name);
        let scalar = param.ty.dtype.map_or(0, DataType::size);
        memory.to_vec(self.shape(name).iter().product::<usize>() * scalar)
    }

    /// A result of this element type: its shape without packed dimensions.
    #[track_caller]
    fn typed<T: Element>(&self, name: &str) -> (Vec<usize>, &Memory) {
        let (param, (dims, memory)) = self.result(name);
        assert!(
            param.ty.dtype == Some(T::DTYPE) && param.ty.packed == T::PACKED,
            "`{name}` has another element type"
        );
        let dims = dims[..dims.len() - T::PACKED.len()].iter();
        (dims.map(|&dim| dim as usize).collect(), memory)
    }

    #[track_caller]
    fn result(&self, name: &str) -> (&'static Param, &(Vec<i64>, Memory)) {
        let params = self.callable.params.iter();
        let mut results = params.filter(|p| p.ty.kind == Kind::ArrayMut);
        results
            .find_map(|param| {
                Some((
                    param,
                    self.results.get(name).filter(|_| param.name == name)?,
                ))
            })
            .unwrap_or_else(|| panic!("`{}` has no result `{name}`", self.callable.name))
    }
}
