//! Element types by XLA's numbers and NumPy's names.

use std::fmt;

macro_rules! dtypes {
    ($($variant:ident = $number:literal, $name:literal, $size:literal;)*) => {
        /// An element type, numbered as in XLA.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(i32)]
        pub enum DataType {
            $(#[doc = concat!("`", $name, "`")] $variant = $number,)*
        }

        impl DataType {
            /// The type with XLA's number, if it is one of those supported here.
            pub const fn from_xla(number: i32) -> Option<DataType> {
                match number {
                    $($number => Some(DataType::$variant),)*
                    _ => None,
                }
            }

            /// NumPy's (or ml_dtypes') name.
            pub const fn name(self) -> &'static str {
                match self { $(DataType::$variant => $name,)* }
            }

            /// Bytes per element.
            pub const fn size(self) -> usize {
                match self { $(DataType::$variant => $size,)* }
            }
        }
    };
}

dtypes! {
    Pred = 1, "bool", 1;
    S8 = 2, "int8", 1;
    S16 = 3, "int16", 2;
    S32 = 4, "int32", 4;
    S64 = 5, "int64", 8;
    U8 = 6, "uint8", 1;
    U16 = 7, "uint16", 2;
    U32 = 8, "uint32", 4;
    U64 = 9, "uint64", 8;
    F16 = 10, "float16", 2;
    F32 = 11, "float32", 4;
    F64 = 12, "float64", 8;
    C64 = 15, "complex64", 8;
    Bf16 = 16, "bfloat16", 2;
    C128 = 18, "complex128", 16;
    F8E5M2 = 19, "float8_e5m2", 1;
    F8E4M3FN = 20, "float8_e4m3fn", 1;
    F8E4M3B11FNUZ = 23, "float8_e4m3b11fnuz", 1;
    F8E5M2FNUZ = 24, "float8_e5m2fnuz", 1;
    F8E4M3FNUZ = 25, "float8_e4m3fnuz", 1;
    F8E4M3 = 28, "float8_e4m3", 1;
    F8E3M4 = 29, "float8_e3m4", 1;
    F8E8M0FNU = 33, "float8_e8m0fnu", 1;
}

impl DataType {
    /// Whether the elements are integers, which booleans are not.
    pub(crate) const fn is_integer(self) -> bool {
        use DataType::{S8, S16, S32, S64, U8, U16, U32, U64};
        matches!(self, S8 | S16 | S32 | S64 | U8 | U16 | U32 | U64)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
