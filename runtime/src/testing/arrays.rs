//! Inputs from arrays of `ndarray`.

use super::Call;
use crate::element::Element;
use ndarray::{ArrayBase, Data, Dimension};

impl Call {
    /// Gives an input or in-out as an array of `ndarray`, of any layout. Packed dimensions are in
    /// `T`.
    #[track_caller]
    pub fn input_array<T: Element, D: Dimension>(
        self,
        name: &str,
        array: &ArrayBase<impl Data<Elem = T>, D>,
    ) -> Call {
        let data: Vec<T> = array.iter().copied().collect();
        self.input(name, array.shape(), &data)
    }

    /// Gives an input or in-out that `jax.vmap` has batched: its leading axes are the batch's.
    ///
    /// # Panics
    /// Also if they have other sizes than the batch.
    #[track_caller]
    pub fn batched_input_array<T: Element, D: Dimension>(
        self,
        name: &str,
        array: &ArrayBase<impl Data<Elem = T>, D>,
    ) -> Call {
        let data: Vec<T> = array.iter().copied().collect();
        let (axes, shape) = array
            .shape()
            .split_at_checked(self.batch.len())
            .unwrap_or_default();
        assert_eq!(axes, self.batch, "`{name}`: the sizes of the batch axes");
        self.batched_input(name, shape, &data)
    }
}
