//! What can stand in a callable's signature.

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::ffi::frame::Call;
use crate::ffi::slot::{self, Slot};
use crate::packed::PackedType;

use crate::signature::{Callable, ParamType};
use crate::state::{Built, Holder};

/// A type that a parameter of a callable can have. Only types of this crate and of Rust do.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a `#[jax_callable]` function",
    label = "not a parameter type",
    note = "arrays are `cpu::Array<T, N>` (inputs) and `cpu::ArrayMut<T, N>` (outputs and in-outs) and `cpu::Scratch<T, N>` (workspace), or with the cargo feature `cuda` those of `cuda`",
    note = "static attributes are `bool`, `i8` to `i64`, `u8` to `u64`, `f32`, `f64`, `&str`, `&[T]` and `[T; K]` of these numbers; with the cargo features `half` and `num-complex` also `f16`, `bf16`, `Complex<f32>`, `Complex<f64>`",
    note = "the first parameter may be `&cpu::Context` or `&cuda::Context`",
    note = "`&State<S>` is what `state = ...` has built, for an `S: Send + Sync`; on CUDA, `&cuda::PerDevice<S>` is built on each device"
)]
pub trait FfiArg<'a>: Sized {
    /// What the type says of the parameter.
    #[doc(hidden)]
    const TYPE: ParamType;

    /// Where the state is, for a parameter that is one; else `Other`.
    #[doc(hidden)]
    type StateOr<Other: Holder>: Holder;

    /// The parameter's value in a call. Not `unsafe` to call, for only a [`Definition`] is
    /// given a call, and has promised to take each parameter as what it is.
    #[doc(hidden)]
    fn take(call: &'a Call<'a>, index: usize) -> Self;
}

/// A number or boolean that can be a static attribute.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of a static attribute",
    label = "not a number or `bool`",
    note = "`&[T]` and `[T; K]` take `bool`, `i8` to `i64`, `u8` to `u64`, `f32`, `f64`, and with the cargo features `half` and `num-complex` also `f16`, `bf16`, `Complex<f32>`, `Complex<f64>`; an array that JAX passes at run time is a `cpu::Array<T, N>`"
)]
pub trait StaticNumber: Copy + 'static + sealed::Sealed {
    /// The type in XLA's terms.
    #[doc(hidden)]
    const DTYPE: DataType;
    /// The value from its bits as they travel: integers by value, two's complement;
    /// complex numbers real part first.
    #[doc(hidden)]
    fn from_words(words: [u64; 2]) -> Self;
    /// Its bits as they travel.
    #[doc(hidden)]
    fn to_words(self) -> [u64; 2];
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! static_numbers {
    ($($ty:ty => $dtype:ident, |$words:ident| $value:expr, |$this:ident| $bits:expr;)*) => {$(
        impl sealed::Sealed for $ty {}
        #[diagnostic::do_not_recommend]
        impl StaticNumber for $ty {
            const DTYPE: DataType = DataType::$dtype;
            fn from_words($words: [u64; 2]) -> Self {
                $value
            }
            fn to_words(self) -> [u64; 2] {
                let $this = self;
                $bits
            }
        }
    )*};
}

static_numbers! {
    bool => Pred, |words| words[0] != 0, |value| [u64::from(value), 0];
    i8 => S8, |words| words[0] as i8, |value| [value as u64, 0];
    i16 => S16, |words| words[0] as i16, |value| [value as u64, 0];
    i32 => S32, |words| words[0] as i32, |value| [value as u64, 0];
    i64 => S64, |words| words[0] as i64, |value| [value as u64, 0];
    u8 => U8, |words| words[0] as u8, |value| [u64::from(value), 0];
    u16 => U16, |words| words[0] as u16, |value| [u64::from(value), 0];
    u32 => U32, |words| words[0] as u32, |value| [u64::from(value), 0];
    u64 => U64, |words| words[0], |value| [value, 0];
    f32 => F32, |words| f32::from_bits(words[0] as u32), |value| [u64::from(value.to_bits()), 0];
    f64 => F64, |words| f64::from_bits(words[0]), |value| [value.to_bits(), 0];
}

#[cfg(feature = "half")]
static_numbers! {
    half::f16 => F16,
        |words| half::f16::from_bits(words[0] as u16),
        |value| [u64::from(value.to_bits()), 0];
    half::bf16 => Bf16,
        |words| half::bf16::from_bits(words[0] as u16),
        |value| [u64::from(value.to_bits()), 0];
}

#[cfg(feature = "num-complex")]
static_numbers! {
    num_complex::Complex<f32> => C64,
        |words| num_complex::Complex::new(
            f32::from_bits(words[0] as u32),
            f32::from_bits((words[0] >> 32) as u32),
        ),
        |value| [u64::from(value.re.to_bits()) | u64::from(value.im.to_bits()) << 32, 0];
    num_complex::Complex<f64> => C128,
        |words| num_complex::Complex::new(f64::from_bits(words[0]), f64::from_bits(words[1])),
        |value| [value.re.to_bits(), value.im.to_bits()];
}

/// The function that takes the parameters of a call, which was checked against the description,
/// and runs the callable with them. Its errors are the callable's. Nobody else is given a [`Call`],
/// so that this is not `unsafe`, and neither is the call of the callable in it.
pub type Body = for<'a> fn(&'a Call<'a>) -> Result<()>;

/// The function that builds a state. Its errors are the constructor's.
pub type BuildState = for<'a> fn(&'a Call<'a>) -> Result<Built>;

/// What the attribute implements for the type in the hidden module of a callable.
///
/// # Safety
/// `CALLABLE` describes the very parameters that `CALL` takes, each at its position, and once;
/// `TEXT`, `TYPES`, `PACKED` and `KEYS` say the same. `STATE` takes only those that are known to it. `SLOT` is a
/// static that is of this type alone.
pub unsafe trait Definition: Sized {
    /// The callable's description, for use at compile time: without its documentation and its
    /// place in the source.
    const CALLABLE: &'static Callable;

    /// What names and syntax say, packed into text.
    const TEXT: &'static str;

    /// What the types of the parameters say.
    const TYPES: &'static [ParamType];

    /// The same in fewer bytes.
    const PACKED: &'static [PackedType];

    /// What the attribute's keys say, of a function without parameters.
    const KEYS: Option<&'static Callable> = None;

    /// Builds the state, for a callable that has one. Of the call nothing is there but the
    /// static attributes, and for a state on a device the context.
    const STATE: Option<BuildState> = None;

    /// A static of the callable's own. A pointer, for constants cannot refer to what changes.
    const SLOT: *const Slot;

    /// The callable's description, for when the program runs.
    fn callable() -> &'static Callable {
        slot::of::<Self>().get().callable
    }

    /// Runs the function with the parameters of a call.
    const CALL: Body;
}

/// What a callable may return: `()` or `Result<(), E>` with `E: Into<Error>`.
#[diagnostic::on_unimplemented(
    message = "a `#[jax_callable]` function cannot return `{Self}`",
    label = "expected `()` or `Result<(), E>` with `E: Into<jax_callable::Error>`",
    note = "results are written to `ArrayMut` parameters; every `std::error::Error + Send + Sync` converts into `jax_callable::Error`"
)]
pub trait IntoResult {
    /// The result in the runtime's terms.
    #[doc(hidden)]
    fn into_result(self) -> Result<()>;
}

#[diagnostic::do_not_recommend]
impl IntoResult for () {
    fn into_result(self) -> Result<()> {
        Ok(())
    }
}

// Else the compiler would talk about what `Into<Error>` asks of `E`.
#[diagnostic::do_not_recommend]
impl<E: Into<Error>> IntoResult for std::result::Result<(), E> {
    fn into_result(self) -> Result<()> {
        self.map_err(Into::into)
    }
}
