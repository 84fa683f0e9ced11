#![allow(unused_variables)]
use jax_callable::prelude::*;

// A stand-in for a parameter type of the other platform.
mod cuda {
    use jax_callable::__private::{Call, FfiArg, Kind, ParamType, Platform};

    pub struct Array;

    impl<'a> FfiArg<'a> for Array {
        const TYPE: ParamType = ParamType {
            kind: Kind::Array,
            platform: Some(Platform::Cuda),
            dtype: None,
            rank: 1,
            packed: &[],
            align: 1,
            value: None,
        };

        unsafe fn take(_: &'a Call<'a>, _: usize) -> Self {
            Array
        }
    }
}
type Input = cuda::Array;

#[jax_callable]
fn f(x: Input, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
