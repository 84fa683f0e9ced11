//! What is wrong with a call that was refused.

use super::attrs::array;
use super::buffer::size_in_bytes;
use super::frame::Call;
use super::sys;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::signature::{Param, ParamType};

impl Call<'_> {
    /// For a frame whose buffers are not those of the callable's parameters.
    #[cold]
    pub(super) fn explain_buffers(&self) -> Error {
        let operands: Vec<_> = self.callable().operands().collect();
        let results: Vec<_> = self.callable().all_results().collect();
        let found = self
            .check_list("operands", &self.frame.args, &operands, |i| {
                self.operand_rank(i)
            })
            .and_then(|()| {
                self.check_list("results", &self.frame.rets, &results, |i| {
                    self.result_rank(i)
                })
            });
        match found {
            Err(error) => error,
            Ok(()) => Error::internal("the call was refused without a reason"),
        }
    }

    fn check_list(
        &self,
        what: &str,
        list: &sys::Buffers,
        params: &[(usize, &Param)],
        batch_rank: impl Fn(usize) -> usize,
    ) -> Result<()> {
        if (0..1 << 16).contains(&list.size) && list.size != params.len() as i64 {
            return Err(Error::invalid_argument(format!(
                "expected {} {what}, got {}",
                params.len(),
                list.size
            )));
        }
        // SAFETY: the frame is XLA's.
        let buffers = unsafe { buffers(list, params.len())? };
        let mut buffers = params.iter().zip(buffers).enumerate();
        buffers.try_for_each(|(i, ((_, param), buffer))| check_buffer(param, buffer, batch_rank(i)))
    }

    /// For a result that overlaps an operand, or a result numbered after all operands.
    #[cold]
    pub(super) fn explain_overlap(&self, result: usize, other: usize) -> Error {
        let mut params = self.operand_params().chain(self.result_params());
        let mut results = self.result_params();
        Error::invalid_argument(format!(
            "parameter `{}`: its memory overlaps that of `{}`",
            results.nth(result).map_or("?", |(param, _)| param.name),
            params.nth(other).map_or("?", |(param, _)| param.name)
        ))
    }
}

fn check_buffer(param: &Param, buffer: &sys::Buffer, batch_rank: usize) -> Result<()> {
    let Param { name, ty, .. } = param;
    let dims = buffer.dims();
    let rank = batch_rank + usize::from(ty.buffer.rank);
    let has_type = buffer.dtype == ty.buffer.dtype && dims.len() == rank;
    if !has_type || !buffer.has_packed(ty.packed) {
        let got = match buffer.dtype() {
            Some(dtype) => dtype.to_string(),
            None => format!(
                "an unsupported element type (XLA's {}) of shape ",
                buffer.dtype
            ),
        };
        return Err(Error::invalid_argument(format!(
            "parameter `{name}`: expected {}, got {got}{dims:?}",
            array_type(ty, batch_rank),
        )));
    }
    if size_in_bytes(usize::from(ty.buffer.size), dims).is_none() {
        return Err(Error::invalid_argument(format!(
            "parameter `{name}`: the shape {dims:?} is negative or too large"
        )));
    }
    if buffer.size_as(&ty.buffer, batch_rank).is_none() {
        return Err(Error::invalid_argument(format!(
            "parameter `{name}`: its data is at {:p}, which is null or not aligned to {} bytes",
            buffer.data,
            ty.buffer.align_mask + 1
        )));
    }
    Ok(())
}

/// # Safety
/// `list` is a frame's list of arguments or results, as XLA's ABI has it.
unsafe fn buffers(list: &sys::Buffers, count: usize) -> Result<Vec<&sys::Buffer>> {
    if list.size != count as i64 {
        return Err(Error::invalid_argument(format!(
            "the call frame is damaged: a list of {} buffers",
            list.size
        )));
    }
    // SAFETY: the arrays have `size` entries each.
    let (types, pointers) = unsafe {
        (
            array(list.types, list.size)?,
            array(list.buffers, list.size)?,
        )
    };
    types
        .iter()
        .zip(pointers)
        .map(|(&ty, &pointer)| {
            // SAFETY: an entry of this type is null or points to an `XLA_FFI_Buffer`.
            let buffer = unsafe { pointer.cast::<sys::Buffer>().as_ref() };
            buffer
                .filter(|buffer| {
                    let has_rank = (0..1 << 16).contains(&buffer.rank);
                    let has_dims = buffer.rank == 0 || !buffer.dims.is_null();
                    ty == sys::BUFFER && has_rank && has_dims
                })
                .ok_or_else(|| {
                    Error::invalid_argument("the call frame is damaged: a buffer that is none")
                })
        })
        .collect()
}

/// An array type as error messages show it: `float32[?, 3]`, with the batch axes as `*`.
fn array_type(ty: &ParamType, batch_rank: usize) -> String {
    let dims: Vec<String> = std::iter::repeat_n("*".to_owned(), batch_rank)
        .chain(std::iter::repeat_n("?".to_owned(), ty.rank))
        .chain(ty.packed.iter().map(usize::to_string))
        .collect();
    let dtype = ty.dtype.map_or("?", DataType::name);
    format!("{dtype}[{}]", dims.join(", "))
}
