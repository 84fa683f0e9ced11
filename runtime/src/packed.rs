//! Descriptions in few bytes.
//!
//! A [`Callable`] has pointers, each of which costs a library more in relocations than what it
//! points to. So a callable's static has one text, which the attribute writes, and the types of the
//! parameters; the description is made from them when it is first asked for.

use crate::cpu::Context;
use crate::dtype::DataType;
use crate::param::FfiArg;
use crate::signature::{
    BufferType, Callable, Dim, DimOp, Kind, Length, Param, ParamType, Platform, StaticType,
};
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// A [`ParamType`] without pointers.
#[derive(Clone, Copy, Debug)]
pub struct PackedType {
    /// The packed dimensions of an array, or the length of a static attribute that has a fixed one.
    sizes: [u32; 2],
    rank: u16,
    kind: Kind,
    platform: Option<Platform>,
    /// XLA's number of the element type, or 0.
    dtype: u8,
    align_mask: u8,
    form: Form,
}

/// What [`PackedType::sizes`] are, and what the value of a static attribute is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// No static attribute, with that many packed dimensions.
    Packed(Count),
    Str,
    One,
    Slice,
    Fixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    None,
    One,
    Two,
}

/// Packs the types of all parameters.
pub const fn pack<const N: usize>(types: &[ParamType]) -> [PackedType; N] {
    const CONTEXT: PackedType = PackedType::of(<&Context as FfiArg>::TYPE);
    let mut all = [CONTEXT; N];
    let mut i = 0;
    while i < N {
        all[i] = PackedType::of(types[i]);
        i += 1;
    }
    all
}

impl PackedType {
    const fn of(ty: ParamType) -> PackedType {
        let (form, dtype) = match ty.value {
            None => {
                let count = match ty.packed.len() {
                    0 => Count::None,
                    1 => Count::One,
                    _ => Count::Two,
                };
                (Form::Packed(count), ty.dtype)
            }
            Some(StaticType::Str) => (Form::Str, None),
            Some(StaticType::Number(dtype, Length::One)) => (Form::One, Some(dtype)),
            Some(StaticType::Number(dtype, Length::Slice)) => (Form::Slice, Some(dtype)),
            Some(StaticType::Number(dtype, Length::Fixed(_))) => (Form::Fixed, Some(dtype)),
        };
        let sizes = match (ty.packed, ty.value) {
            (&[len], _) | (_, Some(StaticType::Number(_, Length::Fixed(len)))) => [size(len), 0],
            (&[rows, columns], _) => [size(rows), size(columns)],
            (packed, _) => {
                assert!(packed.is_empty(), "more than two packed dimensions");
                [0; 2]
            }
        };
        assert!(ty.rank <= u16::MAX as usize, "too many dimensions");
        PackedType {
            sizes,
            rank: ty.rank as u16,
            kind: ty.kind,
            platform: ty.platform,
            dtype: match dtype {
                Some(dtype) => dtype as u8,
                None => 0,
            },
            align_mask: ty.buffer.align_mask as u8,
            form,
        }
    }

    fn unpack(self) -> ParamType {
        let sizes = self.sizes.map(|size| size as usize);
        let packed: &'static [usize] = match self.form {
            Form::Packed(Count::One) => Box::leak(Box::new([sizes[0]])),
            Form::Packed(Count::Two) => Box::leak(Box::new(sizes)),
            _ => &[],
        };
        let dtype = DataType::from_xla(i32::from(self.dtype));
        let length = match self.form {
            Form::Packed(_) | Form::Str => None,
            Form::One => Some(Length::One),
            Form::Slice => Some(Length::Slice),
            Form::Fixed => Some(Length::Fixed(sizes[0])),
        };
        let value = match (self.form, length.zip(dtype)) {
            (Form::Str, _) => Some(StaticType::Str),
            (_, Some((length, dtype))) => Some(StaticType::Number(dtype, length)),
            (_, None) => None,
        };
        let (dtype, rank) = (dtype.filter(|_| value.is_none()), usize::from(self.rank));
        ParamType {
            kind: self.kind,
            platform: self.platform,
            dtype,
            rank,
            packed,
            buffer: dtype.map_or(BufferType::NONE, |dtype| {
                BufferType::new(dtype, rank, packed, u16::from(self.align_mask))
            }),
            value,
        }
    }
}

const fn size(size: usize) -> u32 {
    assert!(
        size <= u32::MAX as usize,
        "a dimension of more than 32 bits"
    );
    size as u32
}

/// The description that the attribute wrote, with what its keys say; none if this is not one.
pub(crate) fn unpack(
    text: &'static str,
    types: &[PackedType],
    keys: &Callable,
) -> Option<Callable> {
    let mut reader = Reader(text);
    let line = reader.number()?;
    let (name, doc) = (reader.text()?, reader.text()?);
    let dim_names = reader.list(Reader::text)?;
    let params = types.iter().map(|ty| reader.param(ty.unpack()));
    let params = params.collect::<Option<Vec<_>>>()?.leak();
    let (module, file) = reader.0.split_once('\0')?;
    Some(Callable {
        name,
        module,
        file,
        line,
        doc,
        params,
        dim_names,
        ..*keys
    })
}

struct Reader(&'static str);

impl Reader {
    fn number<T: FromStr>(&mut self) -> Option<T> {
        let (number, rest) = self.0.split_once(':')?;
        self.0 = rest;
        number.parse().ok()
    }

    fn text(&mut self) -> Option<&'static str> {
        let len = self.number()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(text)
    }

    /// The list lives as long as the library.
    fn list<T>(&mut self, read: impl Fn(&mut Reader) -> Option<T>) -> Option<&'static [T]> {
        let len: usize = self.number()?;
        let list = (0..len).map(|_| read(self)).collect::<Option<Vec<_>>>()?;
        Some(list.leak())
    }

    fn param(&mut self, ty: ParamType) -> Option<Param> {
        let param = Param::new(self.text()?, ty);
        let param = match self.number()? {
            0_u8 => param,
            1 => param.in_out(),
            _ => return None,
        };
        Some(match self.number()? {
            0_u8 => param,
            1 => param.dims(self.list(Reader::dim)?),
            2 => param.output_dims(self.list(Reader::dim)?),
            _ => return None,
        })
    }

    fn dim(&mut self) -> Option<Dim> {
        let op = match self.text()? {
            "Const" => return self.number().map(Dim::Const),
            "Name" => return self.number().map(Dim::Name),
            "Axis" => return Some(Dim::Axis(self.number()?, self.number()?)),
            "Scalar" => return self.number().map(Dim::Scalar),
            "Add" => DimOp::Add,
            "Sub" => DimOp::Sub,
            "Mul" => DimOp::Mul,
            "Div" => DimOp::Div,
            "Rem" => DimOp::Rem,
            "DivCeil" => DimOp::DivCeil,
            "Min" => DimOp::Min,
            "Max" => DimOp::Max,
            _ => return None,
        };
        let mut operand = || -> Option<&'static Dim> { Some(Box::leak(Box::new(self.dim()?))) };
        Some(Dim::Op(op, operand()?, operand()?))
    }
}
