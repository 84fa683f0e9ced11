//! Values of static attributes in the form in which they travel.

use crate::dtype::DataType;
use crate::ffi::host_frame::AttrSpec;
use crate::param::StaticNumber;

/// A value for a static attribute: a number, `bool`, `&str`, `&[T]` or `[T; K]`.
pub trait IntoStatic: sealed::Sealed {}

pub(super) mod sealed {
    pub trait Sealed {
        #[doc(hidden)]
        fn spec(self) -> super::Spec;
    }
}

/// An attribute of the program.
pub struct Spec(pub(super) AttrSpec);

impl<T: sealed::Sealed> IntoStatic for T {}

impl sealed::Sealed for &str {
    fn spec(self) -> Spec {
        Spec(AttrSpec::Str(self.into()))
    }
}

impl<T: StaticNumber> sealed::Sealed for &[T] {
    fn spec(self) -> Spec {
        Spec(match T::DTYPE {
            DataType::U8 => {
                AttrSpec::U8Array(self.iter().map(|value| value.to_words()[0] as u8).collect())
            }
            DataType::C128 => AttrSpec::I64Array(
                self.iter()
                    .flat_map(|value| value.to_words().map(|word| word as i64))
                    .collect(),
            ),
            _ => AttrSpec::I64Array(
                self.iter()
                    .map(|value| value.to_words()[0] as i64)
                    .collect(),
            ),
        })
    }
}

impl<T: StaticNumber, const K: usize> sealed::Sealed for [T; K] {
    fn spec(self) -> Spec {
        self.as_slice().spec()
    }
}

impl<T: StaticNumber, const K: usize> sealed::Sealed for &[T; K] {
    fn spec(self) -> Spec {
        self.as_slice().spec()
    }
}

macro_rules! numbers {
    ($($ty:ty,)*) => {$(
        impl sealed::Sealed for $ty {
            fn spec(self) -> Spec {
                let [re, im] = self.to_words().map(|word| word as i64);
                Spec(match <$ty as StaticNumber>::DTYPE {
                    DataType::C128 => AttrSpec::I64Array(vec![re, im]),
                    _ => AttrSpec::I64(re),
                })
            }
        }
    )*};
}

numbers! { bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, }
#[cfg(feature = "half")]
numbers! { half::f16, half::bf16, }
#[cfg(feature = "num-complex")]
numbers! { num_complex::Complex<f32>, num_complex::Complex<f64>, }
