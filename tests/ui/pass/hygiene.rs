//! The expansion refers to nothing that the module could hide.
#![no_implicit_prelude]
#![deny(warnings)]
#![forbid(unsafe_code)]

mod shadowed {
    #![allow(dead_code, non_camel_case_types)]

    use ::jax_callable::{cpu, jax_callable};

    struct Result;
    struct Option;
    struct Some;
    struct None;
    struct Ok;
    struct Callable;
    struct Def;
    mod core {}
    mod std {}
    mod inventory {}

    #[jax_callable(in_out = "y", vmap_method = None, output_dims = 4, num_outputs = 2)]
    pub(crate) fn call(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>, z: cpu::ArrayMut<f32, 1>) {
        let _ = (x, y, z);
    }
}

#[::jax_callable::jax_callable]
fn take(call: ::jax_callable::cpu::Array<f32, 1>, slot: ::jax_callable::cpu::ArrayMut<f32, 1>) {
    let _ = (call, slot);
}

fn main() {
    let _ = shadowed::call;
}
