//! The check of what an author promises with `batch_dims`.

use super::call::{Axes, Input};
use super::{Call, Outcome};
use crate::dtype::DataType;
use crate::error::{Code, Error, Result};
use crate::f8;
use crate::ffi::host_memory::Memory;
use crate::signature::{Callable, Dim, Kind, Param};
use std::ops::Range;

impl Call {
    /// Gives an input or in-out random numbers: small integers other than 0, whose sums and
    /// products are exact in any order. The same each time, and others for each parameter.
    ///
    /// # Panics
    /// Also if the array has another rank.
    #[track_caller]
    pub fn random_input(self, name: &str, shape: impl AsRef<[usize]>) -> Call {
        let param = self.operand(name);
        let shape = shape.as_ref();
        let dtype = param.ty.dtype.expect("an array has an element type");
        let numel = shape.iter().chain(param.ty.packed).product::<usize>();
        let mut state = name.bytes().fold(0, |hash: u64, byte| {
            hash.wrapping_mul(31).wrapping_add(byte.into())
        });
        let data: Vec<u8> = (0..numel)
            .flat_map(|_| encode(dtype, small_integer(&mut state), small_integer(&mut state)))
            .collect();
        let mut call = self.input_shape(name, shape);
        let input = call.inputs.get_mut(param.name).expect("it was given");
        input.memory = Some(Memory::of(&data));
        call
    }

    /// Checks the promise `batch_dims`, on which `jax.vmap` and the partitioning over devices
    /// rely: where it is broken, their results are wrong.
    ///
    /// The function runs on the whole arrays, then on pieces of them along each promised
    /// dimension: index by index, and in two unequal parts. Each piece must give what the
    /// whole gave there, bit for bit, and a result without the dimension must be the same
    /// each time.
    ///
    /// ```
    /// use jax_callable::prelude::*;
    /// use jax_callable::testing::Target;
    ///
    /// /// Each row of x less its mean.
    /// #[jax_callable(batch_dims = n)]
    /// fn centre(#[dims(n, m)] x: cpu::Array<f32, 2>, mut out: cpu::ArrayMut<f32, 2>) {
    ///     let m = x.dim(1);
    ///     for (out, x) in out.chunks_mut(m).zip(x.chunks(m)) {
    ///         let mean = x.iter().sum::<f32>() / m as f32;
    ///         out.iter_mut().zip(x).for_each(|(out, x)| *out = x - mean);
    ///     }
    /// }
    ///
    /// /// Each number less the mean of all: not what it promises.
    /// #[jax_callable(batch_dims = n)]
    /// fn centre_all(#[dims(n)] x: cpu::Array<f32, 1>, mut out: cpu::ArrayMut<f32, 1>) {
    ///     let mean = x.iter().sum::<f32>() / x.len() as f32;
    ///     out.iter_mut().zip(x.iter()).for_each(|(out, x)| *out = x - mean);
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// Target::find("centre")?.call().random_input("x", [6, 4]).check_batch_dims()?;
    ///
    /// let call = Target::find("centre_all")?.call().random_input("x", [6]);
    /// let error = call.check_batch_dims().unwrap_err();
    /// assert!(error.to_string().contains("`out` depends on more"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The promise is broken: the message names the result and the dimension. Or the function
    /// fails.
    ///
    /// # Panics
    /// If nothing is promised, a promised dimension is shorter than 2, or it is a call for a
    /// batch or with `output_dims`.
    #[track_caller]
    pub fn check_batch_dims(&self) -> Result<()> {
        let callable = self.target.callable;
        let name = callable.name;
        assert!(
            !callable.batch_dims.is_empty(),
            "`{name}` has no `batch_dims`, so nothing is promised"
        );
        assert!(
            self.batch.is_empty() && self.output_dims.is_empty(),
            "`{name}`: check it without `batch_size` and `output_dims`"
        );
        let whole = self.run()?;
        for &dim in callable.batch_dims {
            let is_cut = |param: &Param| leads(callable, param, dim);
            let first = callable.operands().find(|(_, param)| is_cut(param));
            let size = first.map_or(0, |(_, param)| self.inputs[param.name].dims[0] as usize);
            assert!(
                size >= 2,
                "`{name}`: nothing can be cut along `{dim}`: give arrays in which it is 2 or more"
            );
            let third = size.div_ceil(3);
            let single = (0..size).map(|i| i..i + 1);
            for piece in single.chain([0..third, third..size]) {
                let mut call = self.clone();
                for (_, param) in callable.operands().filter(|(_, param)| is_cut(param)) {
                    let input = call.inputs.get_mut(param.name).expect("the whole call ran");
                    *input = cut(param, input, piece.clone());
                }
                let broken = |what: String| {
                    let path = format!("{}.{name}", callable.crate_name());
                    Error::new(Code::FailedPrecondition, format!("{path}: {what}"))
                };
                let place = format!("run on `{dim}` = {}..{} alone", piece.start, piece.end);
                let part = call
                    .run()
                    .map_err(|error| broken(format!("it fails when {place}: {error}")))?;
                for (_, param) in callable.results() {
                    let piece = is_cut(param).then(|| piece.clone());
                    if let Some(what) = difference(param, &whole, &part, piece) {
                        return Err(broken(format!(
                            "batch_dims promises that `{dim}` is independent, but `{}` depends on \
                             more: {place}, it {what}. Take `{dim}` out of batch_dims",
                            param.name
                        )));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether an array begins with a dimension, by its declaration.
fn leads(callable: &Callable, param: &Param, dim: &str) -> bool {
    let first = callable.operands().next().map(|(_, first)| first);
    let dims = param.dims.or_else(|| {
        // An output's shape is that of the first array, if it can be.
        let is_output = param.ty.kind == Kind::ArrayMut && !param.in_out;
        first
            .filter(|first| is_output && first.ty.rank == param.ty.rank)?
            .dims
    });
    matches!(dims, Some([Dim::Name(name), ..]) if callable.dim_names[*name] == dim)
}

fn scalar_size(param: &Param) -> usize {
    param.ty.dtype.map_or(0, DataType::size)
}

/// A piece of an input along its first dimension.
fn cut(param: &Param, input: &Input, piece: Range<usize>) -> Input {
    let mut dims = input.dims.clone();
    let inner = dims[1..].iter().map(|&dim| dim as usize);
    let row = inner
        .chain(param.ty.packed.iter().copied())
        .product::<usize>()
        * scalar_size(param);
    let bytes = input.memory.as_ref().expect("the whole call ran").bytes();
    dims[0] = piece.len() as i64;
    Input {
        axes: Axes::Some(Vec::new()),
        dims,
        memory: Some(Memory::of(&bytes[piece.start * row..piece.end * row])),
    }
}

/// How a result of a piece differs from its place in the whole, if it does.
fn difference(
    param: &Param,
    whole: &Outcome,
    part: &Outcome,
    piece: Option<Range<usize>>,
) -> Option<String> {
    let (mut expected, got) = (whole.bytes(param.name), part.bytes(param.name));
    let mut shape = whole.shape(param.name);
    if let Some(piece) = piece {
        let row = expected.len() / shape[0];
        expected = expected[piece.start * row..piece.end * row].to_vec();
        shape[0] = piece.len();
    }
    if shape != part.shape(param.name) {
        let got = part.shape(param.name);
        return Some(format!("has shape {got:?} where the whole has {shape:?}"));
    }
    let byte = expected.iter().zip(&got).position(|(a, b)| a != b)?;
    let mut rest = byte / scalar_size(param);
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|dim| (rest % dim, rest /= dim).0)
        .collect();
    index.reverse();
    Some(format!("differs from the whole at {index:?}"))
}

/// From -8 to 8 without 0; the next numbers by the generator SplitMix64.
fn small_integer(state: &mut u64) -> i8 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut bits = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^= bits >> 31;
    let magnitude = 1 + (bits & 7) as i8;
    if bits & 8 == 0 { magnitude } else { -magnitude }
}

/// A small integer in an element type: its bytes. Unsigned types get its magnitude.
fn encode(dtype: DataType, re: i8, im: i8) -> Vec<u8> {
    let (float, unsigned) = (f32::from(re), re.unsigned_abs());
    match dtype {
        DataType::Pred => vec![u8::from(re > 0)],
        DataType::S8 => re.to_ne_bytes().to_vec(),
        DataType::S16 => i16::from(re).to_ne_bytes().to_vec(),
        DataType::S32 => i32::from(re).to_ne_bytes().to_vec(),
        DataType::S64 => i64::from(re).to_ne_bytes().to_vec(),
        DataType::U8 => vec![unsigned],
        DataType::U16 => u16::from(unsigned).to_ne_bytes().to_vec(),
        DataType::U32 => u32::from(unsigned).to_ne_bytes().to_vec(),
        DataType::U64 => u64::from(unsigned).to_ne_bytes().to_vec(),
        // An `f32` with less of its exponent and mantissa: these numbers have no more.
        DataType::F16 => {
            let bits = float.abs().to_bits() - ((127 - 15) << 23);
            let sign = u16::from(re < 0) << 15;
            (sign | (bits >> 13) as u16).to_ne_bytes().to_vec()
        }
        DataType::Bf16 => ((float.to_bits() >> 16) as u16).to_ne_bytes().to_vec(),
        DataType::F32 => float.to_ne_bytes().to_vec(),
        DataType::F64 => f64::from(re).to_ne_bytes().to_vec(),
        DataType::C64 => [encode(DataType::F32, re, im), encode(DataType::F32, im, re)].concat(),
        DataType::C128 => [encode(DataType::F64, re, im), encode(DataType::F64, im, re)].concat(),
        DataType::F8E5M2 => vec![f8::F8E5M2::from_f32(float).to_bits()],
        DataType::F8E4M3FN => vec![f8::F8E4M3FN::from_f32(float).to_bits()],
        DataType::F8E4M3B11FNUZ => vec![f8::F8E4M3B11FNUZ::from_f32(float).to_bits()],
        DataType::F8E5M2FNUZ => vec![f8::F8E5M2FNUZ::from_f32(float).to_bits()],
        DataType::F8E4M3FNUZ => vec![f8::F8E4M3FNUZ::from_f32(float).to_bits()],
        DataType::F8E4M3 => vec![f8::F8E4M3::from_f32(float).to_bits()],
        DataType::F8E3M4 => vec![f8::F8E3M4::from_f32(float).to_bits()],
        DataType::F8E8M0FNU => vec![f8::F8E8M0FNU::from_f32(float.abs()).to_bits()],
    }
}

#[cfg(test)]
mod tests;
