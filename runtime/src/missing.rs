//! Stand-ins for types whose cargo feature is off, so that the compiler asks for the feature
//! where it would not know a name.

#![allow(missing_docs, missing_debug_implementations, non_camel_case_types)]

/// With the feature `half`, those of the crate.
#[cfg(not(feature = "half"))]
pub mod half {
    pub struct f16;
    pub struct bf16;
}

/// With the feature `num-complex`, that of the crate.
#[cfg(not(feature = "num-complex"))]
pub mod num_complex {
    use std::marker::PhantomData;

    pub struct Complex<T>(PhantomData<T>);
}

/// With the feature `cuda`, the module of that name.
#[cfg(not(feature = "_cuda"))]
pub mod cuda {
    use crate::ffi::frame::Call;
    use crate::param::FfiArg;
    use crate::signature::ParamType;
    use crate::state::Holder;
    use std::marker::PhantomData;

    pub struct Array<'a, T, const N: usize>(PhantomData<&'a T>);
    pub struct ArrayMut<'a, T, const N: usize>(PhantomData<&'a T>);
    pub struct Scratch<'a, T, const N: usize>(PhantomData<&'a T>);
    pub struct PerDevice<S>(PhantomData<S>);
    pub struct Context;

    /// The cargo feature.
    pub struct Feature;

    /// No type has it.
    #[diagnostic::on_unimplemented(
        message = "the parameter types of `cuda` need the cargo feature `cuda`",
        label = "needs the cargo feature `cuda`",
        note = "turn it on in Cargo.toml: `jax-callable = {{ version = \"...\", features = [\"cuda\"] }}`, or `cuda-13000` instead; the parameter types on the CPU are those of `cpu`"
    )]
    pub trait IsOn {}

    macro_rules! missing {
        ($([$($generics:tt)*] $ty:ty,)*) => {$(
            impl<'a, $($generics)*> FfiArg<'a> for $ty
            where
                &'a Feature: IsOn,
            {
                const TYPE: ParamType = unreachable!();
                type StateOr<Other: Holder> = Other;

                fn take(_: &'a Call<'a>, _: usize) -> Self {
                    unreachable!()
                }
            }
        )*};
    }

    missing! {
        [T, const N: usize] Array<'a, T, N>,
        [T, const N: usize] ArrayMut<'a, T, N>,
        [T, const N: usize] Scratch<'a, T, N>,
        [S] &'a PerDevice<S>,
        [] &'a Context,
    }
}
