//! A call for a whole batch: its axes, and the part of each buffer that is one element's.

use super::frame::Call;
use super::sys;
use super::values::Values;
use crate::batch::{self, Batch};
use crate::error::{Error, Result};
use crate::signature::Param;

impl<'a> Call<'a> {
    /// Runs the body, once for each batch element, after the call was checked.
    pub(super) fn run(mut self) -> Result<()> {
        let body = self.registration.body;
        let values = Values::new();
        self.values = &values;
        self.read_numbers(&values)?;
        if self.batch_rank == 0 {
            self.read_views(&values);
            return body(&self);
        }
        for element in 0..self.num_elements() {
            self.element = element;
            self.read_views(&values);
            body(&self).map_err(|error| {
                let code = error.code();
                Error::new(code, format!("batch element {element}: {error}"))
            })?;
        }
        Ok(())
    }

    /// How often the body runs.
    #[inline]
    pub(super) fn num_elements(&self) -> usize {
        // It cannot overflow: the results' sizes, checked, begin with this product.
        self.sizes.iter().map(|&size| size as usize).product()
    }

    /// The number of batch axes in front of an operand's own dimensions.
    #[inline]
    pub(super) fn operand_rank(&self, operand: usize) -> usize {
        if self.batch_rank == 0 {
            return 0;
        }
        self.site.map_or(0, |site| site.batch.rank_of(operand))
    }

    /// The number of batch axes in front of a result's own dimensions: scratch has none.
    #[inline]
    pub(super) fn result_rank(&self, result: usize) -> usize {
        if result < self.plan().num_results() {
            self.batch_rank
        } else {
            0
        }
    }

    /// Where this batch element's data begins in a buffer with that many batch axes.
    #[inline]
    pub(super) fn data(&self, buffer: &'a sys::Buffer, batch_rank: usize) -> *mut u8 {
        let data = buffer.data.cast::<u8>();
        if batch_rank == 0 {
            return data;
        }
        let (leading, own) = buffer.dims().split_at(batch_rank);
        let scalar = buffer.dtype().map_or(0, crate::DataType::size);
        let size = own.iter().map(|&dim| dim as usize).product::<usize>() * scalar;
        if size == 0 {
            return data;
        }
        data.wrapping_add(batch::position(self.element, self.sizes, leading) * size)
    }

    /// The batch sizes of the first result.
    pub(super) fn first_sizes(&self) -> &'a [i64] {
        let first = self.result_params().next();
        first.map_or(&[], |(_, first)| &first.dims()[..self.batch_rank])
    }

    /// Checks the batch axes of all buffers against each other and the call site's.
    pub(super) fn check_batch(&self, batch: &Batch) -> Result<()> {
        let rank = self.batch_rank;
        let wrong = |param: &Param, leading: &[i64]| {
            Error::invalid_argument(format!(
                "parameter `{}`: its batch axes are {leading:?}, which does not go with a batch of \
                 {:?}",
                param.name, self.sizes
            ))
        };
        for (param, buffer) in self.result_params().take(self.plan().num_results()) {
            let leading = &buffer.dims()[..rank];
            if leading != self.sizes {
                return Err(wrong(param, leading));
            }
        }
        for (operand, (param, buffer)) in self.operand_params().enumerate() {
            let leading = &buffer.dims()[..self.operand_rank(operand)];
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
}
