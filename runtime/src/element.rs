//! What arrays hold: scalars, and packed vectors and matrices of them.

use crate::dtype::DataType;
use crate::f8;
use std::fmt;

/// A scalar element type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a scalar element type",
    label = "not a scalar element type",
    note = "scalars are `Pred` (JAX's bool), `i8` to `i64`, `u8` to `u64`, `f32`, `f64`, the 8-bit floats of `jax_callable::f8`, and with the cargo features `half` and `num-complex` also `f16`, `bf16`, `Complex<f32>`, `Complex<f64>`"
)]
pub trait Scalar: Copy + Send + Sync + 'static + private::Sealed {
    /// The XLA type.
    const DTYPE: DataType;
}

/// An element of an array: a scalar `S`, a packed vector `[S; K]` or a packed matrix
/// `[[S; C]; R]`.
///
/// In JAX the packed dimensions follow the array's own: `Array<[f32; 3], 1>` is a
/// `float32` array of shape `(n, 3)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of an array",
    label = "not an element type",
    note = "elements are `Pred` (JAX's bool), `i8` to `i64`, `u8` to `u64`, `f32`, `f64`, the 8-bit floats of `jax_callable::f8`, with the cargo features `half` and `num-complex` also `f16`, `bf16`, `Complex<f32>`, `Complex<f64>`, and `[S; K]` or `[[S; C]; R]` of these"
)]
pub trait Element: Copy + Send + Sync + 'static + private::Sealed {
    /// The XLA type of the scalars.
    const DTYPE: DataType;
    /// The packed dimensions: `[]`, `[K]` or `[R, C]`.
    const PACKED: &'static [usize];
}

mod private {
    /// Every bit pattern of the type's size is a valid value, and the type has no
    /// padding: what makes a view of foreign memory sound.
    pub trait Sealed {}
}
use private::Sealed;

/// A boolean element, `bool` in JAX: one byte, true unless 0.
///
/// Foreign memory may hold any byte, which a Rust `bool` must not; hence this type.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct Pred(u8);

impl Pred {
    /// True.
    pub const TRUE: Pred = Pred(1);
    /// False.
    pub const FALSE: Pred = Pred(0);

    /// The value.
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Pred {
    fn from(value: bool) -> Pred {
        Pred(u8::from(value))
    }
}

impl From<Pred> for bool {
    fn from(value: Pred) -> bool {
        value.get()
    }
}

impl PartialEq for Pred {
    fn eq(&self, other: &Pred) -> bool {
        self.get() == other.get()
    }
}
impl Eq for Pred {}

impl fmt::Debug for Pred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

macro_rules! scalars {
    ($($ty:ty => $dtype:ident,)*) => {$(
        impl Sealed for $ty {}
        #[diagnostic::do_not_recommend]
        impl Scalar for $ty {
            const DTYPE: DataType = DataType::$dtype;
        }
        // The trait's note lists them all.
        #[diagnostic::do_not_recommend]
        impl Element for $ty {
            const DTYPE: DataType = DataType::$dtype;
            const PACKED: &'static [usize] = &[];
        }
        const _: () = assert!(size_of::<$ty>() == DataType::$dtype.size());
    )*};
}

scalars! {
    Pred => Pred,
    i8 => S8,
    i16 => S16,
    i32 => S32,
    i64 => S64,
    u8 => U8,
    u16 => U16,
    u32 => U32,
    u64 => U64,
    f32 => F32,
    f64 => F64,
    f8::F8E5M2 => F8E5M2,
    f8::F8E4M3FN => F8E4M3FN,
    f8::F8E4M3B11FNUZ => F8E4M3B11FNUZ,
    f8::F8E5M2FNUZ => F8E5M2FNUZ,
    f8::F8E4M3FNUZ => F8E4M3FNUZ,
    f8::F8E4M3 => F8E4M3,
    f8::F8E3M4 => F8E3M4,
    f8::F8E8M0FNU => F8E8M0FNU,
}

#[cfg(feature = "half")]
scalars! {
    half::f16 => F16,
    half::bf16 => Bf16,
}

#[cfg(feature = "num-complex")]
scalars! {
    num_complex::Complex<f32> => C64,
    num_complex::Complex<f64> => C128,
}

impl<S: Sealed, const K: usize> Sealed for [S; K] {}

impl<S: Scalar, const K: usize> Element for [S; K] {
    const DTYPE: DataType = S::DTYPE;
    const PACKED: &'static [usize] = {
        assert!(K > 0, "a packed vector needs at least one element");
        &[K]
    };
}

impl<S: Scalar, const C: usize, const R: usize> Element for [[S; C]; R] {
    const DTYPE: DataType = S::DTYPE;
    const PACKED: &'static [usize] = {
        assert!(R > 0 && C > 0, "a packed matrix needs at least one element");
        &[R, C]
    };
}
