//! Rust functions as typed XLA FFI targets: annotate, build a cdylib, load it in JAX.
//!
//! ```
//! use jax_callable::prelude::*;
//!
//! /// y <- a x + y, in place.
//! #[jax_callable(in_out = "y")]
//! fn saxpy(a: f32, x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
//!     for (y, x) in y.iter_mut().zip(x.iter()) {
//!         *y += a * x;
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! The attribute [`jax_callable`] reads the signature; its documentation lists the keys.
//! [`cpu`] has the parameter types (and `cuda`, with the feature of that name), [`State`] is
//! what lives as long as a call site, [`Error`] is what bodies return, and [`testing`] runs a
//! target without JAX.

#![deny(unsafe_code)]

#[cfg(panic = "abort")]
compile_error!(
    "jax-callable needs `panic = \"unwind\"`: with \"abort\" a panic in a callable would end the \
     JAX process. Remove `panic = \"abort\"` from the profile."
);

// Lets the attribute's expansion name this crate in its own tests.
#[cfg(any(test, fuzzing))]
extern crate self as jax_callable;

mod absent;
mod batch;
#[doc(hidden)]
pub mod check;
mod const_text;
pub mod cpu;
#[cfg(feature = "_cuda")]
#[allow(unsafe_code)]
pub mod cuda;
mod dims;
mod dtype;
mod element;
mod error;
pub mod f8;
#[allow(unsafe_code)]
mod ffi;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(any(feature = "_cuda", test))]
mod graph;
mod manifest;
#[doc(hidden)]
pub mod missing;
mod packed;
// Declares an `unsafe` trait, and has no unsafe code.
#[allow(unsafe_code)]
mod param;
mod plan;
#[cfg(test)]
mod random;
mod registry;
mod signature;
mod state;
mod statics;
mod sync;
pub mod testing;
mod vjp;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use dtype::DataType;
pub use element::{Element, Pred, Scalar};
pub use error::{Code, Error, Result};
pub use jax_callable_macros::jax_callable;
pub use param::{FfiArg, IntoResult, StaticNumber};
pub use state::{Holder, IntoState, State};

#[cfg(feature = "_cuda")]
pub use cudarc;
#[cfg(feature = "half")]
pub use half;
#[cfg(feature = "ndarray")]
pub use ndarray;
#[cfg(feature = "num-complex")]
pub use num_complex;

/// What a file of callables needs: `use jax_callable::prelude::*;`.
pub mod prelude {
    #[cfg(feature = "half")]
    #[doc(no_inline)]
    pub use half::{bf16, f16};
    #[cfg(feature = "num-complex")]
    #[doc(no_inline)]
    pub use num_complex::Complex;

    #[cfg(feature = "_cuda")]
    pub use crate::cuda;
    #[cfg(not(feature = "_cuda"))]
    #[doc(hidden)]
    pub use crate::missing::cuda;
    #[cfg(not(feature = "half"))]
    #[doc(hidden)]
    pub use crate::missing::half::{bf16, f16};
    #[cfg(not(feature = "num-complex"))]
    #[doc(hidden)]
    pub use crate::missing::num_complex::Complex;
    pub use crate::{Code, Error, Pred, Result, State, cpu};
    pub use jax_callable_macros::jax_callable;
}

/// Keeps the callables of crates that are linked but not otherwise named.
///
/// The linker drops a dependency that no code refers to, and its callables with it.
///
/// ```
/// # mod ops {} mod more_ops {}
/// jax_callable::link!(ops, more_ops);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! link {
    ($($krate:ident),+ $(,)?) => {
        $(
            #[allow(unused_imports)]
            use $krate as _;
        )+
    };
}
