//! What calls have written.

use crate::element::Element;
use crate::ffi::host_frame::Memory;
use crate::signature::Callable;
use std::collections::HashMap;

/// What a call has written.
pub struct Outcome {
    pub(super) callable: &'static Callable,
    pub(super) results: HashMap<&'static str, (Vec<i64>, Memory)>,
}

impl Outcome {
    /// The elements of an in-out or output in row-major order, the whole batch's if there
    /// is one.
    ///
    /// # Panics
    /// If the callable has no such result, or one of another element type.
    #[track_caller]
    pub fn get<T: Element>(&self, name: &str) -> Vec<T> {
        let (dims, memory) = self.result(name);
        let param = self.callable.params.iter().find(|p| p.name == name);
        assert!(
            param.is_some_and(|p| p.ty.dtype == Some(T::DTYPE) && p.ty.packed == T::PACKED),
            "`{name}` has another element type"
        );
        let packed: usize = T::PACKED.iter().product();
        let numel: i64 = dims.iter().product();
        memory.to_vec(numel as usize / packed.max(1))
    }

    /// The shape of an in-out or output as JAX sees it, with batch axis and packed
    /// dimensions.
    ///
    /// # Panics
    /// If the callable has no such result.
    #[track_caller]
    pub fn shape(&self, name: &str) -> Vec<usize> {
        let (dims, _) = self.result(name);
        dims.iter().map(|&dim| dim as usize).collect()
    }

    #[track_caller]
    fn result(&self, name: &str) -> &(Vec<i64>, Memory) {
        self.results
            .get(name)
            .unwrap_or_else(|| panic!("`{}` has no result `{name}`", self.callable.name))
    }
}
