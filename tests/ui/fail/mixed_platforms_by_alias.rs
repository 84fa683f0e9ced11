#![allow(unused_variables)]
use jax_callable::prelude::*;

// Stands in for a type of another platform.
mod cuda {
    use jax_callable::__private::{Call, FfiArg, Holder, ParamType, Platform};
    use jax_callable::cpu;

    pub struct Array;

    impl<'a> FfiArg<'a> for Array {
        const TYPE: ParamType = ParamType {
            platform: Some(Platform::Cuda),
            ..<cpu::Array<'static, f32, 1> as FfiArg<'static>>::TYPE
        };
        type StateOr<Other: Holder> = Other;

        unsafe fn take(_: &'a Call<'a>, _: usize) -> Self {
            Array
        }
    }
}
type Input = cuda::Array;

#[jax_callable]
fn f(x: Input, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
