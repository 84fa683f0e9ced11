//! Static attributes: from the program's form to values of their types.

use crate::dtype::DataType;
use crate::error::{Code, Error, Result};
use crate::ffi::attrs::Attr;
use crate::signature::{Length, StaticType};

/// A static attribute that is decoded once for each call site.
#[derive(Debug)]
pub(crate) enum Kept {
    /// A number that takes two words: a complex128.
    #[cfg_attr(
        not(feature = "num-complex"),
        expect(dead_code, reason = "no type is one")
    )]
    Pair([u64; 2]),
    /// Numbers packed as an array of their type.
    Packed(Packed),
    /// A string.
    Str(Box<str>),
}

/// `len` elements of one type in memory that is aligned for any of them.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) words: Box<[u64]>,
    pub(crate) len: usize,
}

/// Checks an attribute of the program; the decoded value, if it is one to keep.
pub(crate) fn decode(ty: StaticType, attr: Attr<'_>) -> Result<Option<Kept>> {
    match (ty, attr) {
        (StaticType::Str, Attr::Str(text)) => Ok(Some(Kept::Str(text.into()))),
        (StaticType::Number(DataType::C128, Length::One), Attr::I64Array(&[re, im])) => {
            Ok(Some(Kept::Pair([re as u64, im as u64])))
        }
        (StaticType::Number(dtype, Length::One), Attr::I64(value)) if dtype != DataType::C128 => {
            bits(dtype, value).map(|_| None)
        }
        (StaticType::Number(dtype, length), attr) if length != Length::One => {
            let packed = pack(dtype, attr).unwrap_or_else(|| Err(mismatch(ty, attr)))?;
            match length {
                Length::Fixed(k) if k != packed.len => Err(Error::invalid_argument(format!(
                    "expected {k} values, got {}",
                    packed.len
                ))),
                _ => Ok(Some(Kept::Packed(packed))),
            }
        }
        _ => Err(mismatch(ty, attr)),
    }
}

/// A number as a dimension, if it is an integer that fits.
pub(crate) fn as_dim(dtype: DataType, value: i64) -> Option<i64> {
    match dtype {
        DataType::S8
        | DataType::S16
        | DataType::S32
        | DataType::S64
        | DataType::U8
        | DataType::U16
        | DataType::U32 => Some(value),
        // Above 2^63 it travels as a negative number.
        DataType::U64 => (value >= 0).then_some(value),
        _ => None,
    }
}

/// The bits of a number that travelled as an int64: integers by value, floats by their
/// bits, `u64` in two's complement.
fn bits(dtype: DataType, value: i64) -> Result<u64> {
    let width = 8 * dtype.size() as u32;
    let fits = match dtype {
        DataType::Pred => matches!(value, 0 | 1),
        DataType::S8 | DataType::S16 | DataType::S32 => {
            let bound = 1_i64 << (width - 1);
            (-bound..bound).contains(&value)
        }
        _ if width >= 64 => true,
        _ => (0..1_i64 << width).contains(&value),
    };
    if !fits {
        return Err(Error::new(
            Code::InvalidArgument,
            format!("{value} does not hold the bits of a {dtype}"),
        ));
    }
    Ok(if width >= 64 {
        value as u64
    } else {
        value as u64 & ((1 << width) - 1)
    })
}

/// Packs the numbers of an array attribute; none if it has the wrong form.
fn pack(dtype: DataType, attr: Attr<'_>) -> Option<Result<Packed>> {
    let size = dtype.size();
    let mut bytes: Vec<u8> = Vec::new();
    let len = match (dtype, attr) {
        (DataType::U8, Attr::U8Array(values)) => {
            bytes.extend_from_slice(values);
            values.len()
        }
        (DataType::C128, Attr::I64Array(values)) if values.len().is_multiple_of(2) => {
            bytes.extend(values.iter().flat_map(|part| part.to_le_bytes()));
            values.len() / 2
        }
        (DataType::U8 | DataType::C128, _) => return None,
        (_, Attr::I64Array(values)) => {
            for &value in values {
                match bits(dtype, value) {
                    Ok(bits) => bytes.extend_from_slice(&bits.to_le_bytes()[..size]),
                    Err(error) => return Some(Err(error)),
                }
            }
            values.len()
        }
        _ => return None,
    };
    let words = bytes
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        })
        .collect();
    Some(Ok(Packed { words, len }))
}

fn mismatch(ty: StaticType, attr: Attr<'_>) -> Error {
    let expected = match ty {
        StaticType::Str => "a string".to_owned(),
        StaticType::Number(dtype, Length::One) => format!("the bits of one {dtype}"),
        StaticType::Number(dtype, Length::Slice) => format!("an array of {dtype} bits"),
        StaticType::Number(dtype, Length::Fixed(k)) => format!("an array of {k} {dtype} bits"),
    };
    Error::invalid_argument(format!("expected {expected}, got {}", attr.describe()))
}

#[cfg(target_endian = "big")]
compile_error!("jax-callable supports little-endian targets only");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_travel_by_value_and_floats_by_bits() {
        assert_eq!(bits(DataType::S8, -1).unwrap(), 0xff);
        assert_eq!(bits(DataType::U64, -1).unwrap(), u64::MAX);
        let nan = f32::NAN.to_bits();
        assert_eq!(bits(DataType::F32, i64::from(nan)).unwrap(), u64::from(nan));
    }

    #[test]
    fn bits_that_do_not_fit_are_refused() {
        for (dtype, value) in [
            (DataType::Pred, 2),
            (DataType::S8, 128),
            (DataType::S8, -129),
            (DataType::U8, -1),
            (DataType::U16, 1 << 16),
            (DataType::F16, -1),
            (DataType::F32, 1 << 32),
        ] {
            let ty = StaticType::Number(dtype, Length::One);
            let error = decode(ty, Attr::I64(value)).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.to_string().contains(dtype.name()), "{error}");
        }
    }

    #[test]
    fn arrays_are_packed() {
        let ty = StaticType::Number(DataType::S16, Length::Fixed(3));
        let value = decode(ty, Attr::I64Array(&[1, -2, 3])).unwrap();
        let Some(Kept::Packed(packed)) = value else {
            panic!("{value:?}")
        };
        assert_eq!(packed.len, 3);
        assert_eq!(*packed.words, [0x0003_fffe_0001]);
        let error = decode(ty, Attr::I64Array(&[1])).unwrap_err();
        assert_eq!(error.to_string(), "expected 3 values, got 1");
        let error = decode(ty, Attr::Str("x")).unwrap_err();
        assert!(error.to_string().contains("got a string"), "{error}");
    }

    #[test]
    fn only_integers_are_dimensions() {
        assert_eq!(as_dim(DataType::S8, -1), Some(-1));
        assert_eq!(as_dim(DataType::U64, -1), None);
        assert_eq!(as_dim(DataType::F32, 1), None);
    }
}
