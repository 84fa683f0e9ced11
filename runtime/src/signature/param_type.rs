//! What a type says of a parameter.

use super::Platform;
use crate::dtype::DataType;

/// What a parameter's type makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `&cpu::Context` or `&cuda::Context`.
    Context,
    /// `Array<T, N>`: an operand.
    Array,
    /// `ArrayMut<T, N>`: a result, and an operand as well if it is an in-out.
    ArrayMut,
    /// `Scratch<T, N>`: a result that only the body sees.
    Scratch,
    /// A static attribute.
    Static,
    /// `&State<S>`.
    State,
    /// `&PerDevice<S>`.
    PerDevice,
}

/// How many values a static attribute holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// One value.
    One,
    /// `&[T]`.
    Slice,
    /// `[T; K]`.
    Fixed(usize),
}

/// The type of a static attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticType {
    /// Numbers and booleans.
    Number(DataType, Length),
    /// `&str`.
    Str,
}

/// What is known of a parameter from its type alone.
#[derive(Clone, Copy, Debug)]
pub struct ParamType {
    /// What the type makes of the parameter.
    pub kind: Kind,
    /// The platform the type belongs to, none for static attributes and state.
    pub platform: Option<Platform>,
    /// The element type of an array.
    pub dtype: Option<DataType>,
    /// The number of an array's own dimensions.
    pub rank: usize,
    /// The packed dimensions that follow them.
    pub packed: &'static [usize],
    /// What a call's buffer is compared with.
    pub buffer: BufferType,
    /// The type of a static attribute.
    pub value: Option<StaticType>,
}

/// An array type as plain numbers, small, for it is read in every call.
#[derive(Clone, Copy, Debug)]
pub struct BufferType {
    /// XLA's number of the element type.
    pub dtype: i32,
    /// Bytes of a scalar.
    pub size: u16,
    /// Bytes that the data must be aligned to, less one.
    pub align_mask: u16,
    /// Dimensions, the packed ones included.
    pub rank: u16,
    /// Packed dimensions.
    pub packed: u16,
}

impl BufferType {
    pub(crate) const fn new(
        dtype: DataType,
        rank: usize,
        packed: &[usize],
        align_mask: u16,
    ) -> BufferType {
        BufferType {
            dtype: dtype as i32,
            size: dtype.size() as u16,
            align_mask,
            rank: (rank + packed.len()) as u16,
            packed: packed.len() as u16,
        }
    }

    /// For parameters that have no buffer.
    pub const NONE: BufferType = BufferType {
        dtype: 0,
        size: 0,
        align_mask: 0,
        rank: 0,
        packed: 0,
    };
}
