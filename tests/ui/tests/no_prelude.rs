//! The expansion refers to nothing that a module could hide, and what it does is no unsafe code
//! of the crate that it is in.
#![no_implicit_prelude]
#![deny(warnings)]
#![forbid(unsafe_code)]

mod shadowed {
    #![allow(dead_code, non_camel_case_types, unused_macros)]

    use ::jax_callable::{State, cpu, jax_callable};

    struct Result;
    struct Option;
    struct Vec;
    struct Box;
    struct Some;
    struct None;
    struct Ok;
    struct Err;
    struct Callable;
    struct Def;
    struct FfiArg;
    struct IntoState;
    struct str;
    mod core {}
    mod std {}
    mod alloc {}
    mod inventory {}
    macro_rules! panic {
        () => {};
    }
    macro_rules! concat {
        () => {};
    }

    /// y <- y + x; z <- the number of arrays.
    #[jax_callable(in_out = "y", vmap_method = None, output_dims = (k, 2 * k), num_outputs = 2)]
    pub(crate) fn call(
        cx: &cpu::Context,
        k: u32,
        x: cpu::Array<f32, 1>,
        mut y: cpu::ArrayMut<f32, 1>,
        mut z: cpu::ArrayMut<i32, 2>,
    ) -> ::core::result::Result<(), ::std::fmt::Error> {
        let _ = cx;
        y[0] += x[0];
        z.fill(3);
        ::core::result::Result::Ok(())
    }

    pub(crate) struct Table(u32);

    /// y <- the size of the table.
    #[jax_callable(state = Table(size))]
    pub(crate) fn state(size: u32, table: &State<Table>, mut y: cpu::ArrayMut<u32, 0>) {
        y[0] = table.0;
    }
}

// Names that the expansion has too.
#[::jax_callable::jax_callable]
fn take(call: ::jax_callable::cpu::Array<f32, 1>, mut slot: ::jax_callable::cpu::ArrayMut<f32, 1>) {
    slot.copy_from_slice(&call);
}

#[::core::prelude::v1::test]
fn they_run() {
    use ::core::assert_eq;
    use ::jax_callable::testing::Target;

    let target = |name| Target::find(name).unwrap().call();
    let call = target("call").value("k", 2_u32);
    let call = call.input("x", [1], &[1.0_f32]).input("y", [1], &[2.0_f32]);
    let outcome = call.run().unwrap();
    assert_eq!(outcome.get::<f32>("y"), [3.0]);
    assert_eq!(outcome.shape("z"), [2, 4]);

    let outcome = target("state")
        .value("size", 5_u32)
        .output_dims("y", [])
        .run()
        .unwrap();
    assert_eq!(outcome.get::<u32>("y"), [5]);

    let outcome = target("take").input("call", [1], &[7.0_f32]).run().unwrap();
    assert_eq!(outcome.get::<f32>("slot"), [7.0]);
    let _ = (shadowed::call, shadowed::state, take);
}
