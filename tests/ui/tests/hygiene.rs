//! Callables in awkward places, under awkward names: all of them are found and run.
#![deny(warnings, missing_docs, unreachable_pub)]
#![forbid(unsafe_code)]

use jax_callable::testing::Target;

/// `y` of a target, for `x` of 1 and 2.
#[track_caller]
fn run(name: &str) -> Vec<f32> {
    let target = Target::find(name).unwrap();
    let outcome = target.call().input("x", [2], &[1.0_f32, 2.0]).run();
    outcome.unwrap().get("y")
}

mod names {
    use jax_callable::prelude::*;

    // Of primitive types, which the module still uses.
    #[jax_callable(vjp = str)]
    pub(crate) fn f32(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
        y.copy_from_slice(&x);
    }

    #[jax_callable]
    pub(crate) fn str(
        x: cpu::Array<f32, 1>,
        ct_y: cpu::Array<f32, 1>,
        mut d_x: cpu::ArrayMut<f32, 1>,
    ) {
        let text: &str = "text";
        let _ = (x, text);
        d_x.copy_from_slice(&ct_y);
    }

    // Of the language.
    #[jax_callable(name = "looped", in_out = r#match)]
    pub(crate) fn r#loop(
        r#type: f32,
        x: cpu::Array<f32, 1>,
        mut r#match: cpu::ArrayMut<f32, 1>,
        #[dims(x.dim(0))] mut r#fn: cpu::ArrayMut<f32, 1>,
    ) {
        r#match[0] += r#type;
        r#fn.copy_from_slice(&x);
    }

    // Of what the expansion uses.
    #[jax_callable]
    pub(crate) fn call(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
        y.copy_from_slice(&x);
    }

    #[jax_callable]
    pub(crate) fn __call(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
        y.copy_from_slice(&x);
    }

    #[jax_callable(name = "Option")]
    #[allow(non_snake_case)]
    pub(crate) fn Option(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
        y.copy_from_slice(&x);
    }

    #[jax_callable(name = "core_")]
    pub(crate) fn core(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
        y.copy_from_slice(&x);
    }

    #[jax_callable(output_dims(größe = länge))]
    pub(crate) fn überall(länge: u32, x: cpu::Array<f32, 1>, mut größe: cpu::ArrayMut<f32, 1>) {
        größe.fill(x[0]);
    }
}

#[test]
fn names() {
    for name in ["f32", "call", "__call", "Option", "core_"] {
        assert_eq!(run(name), [1.0, 2.0], "{name}");
    }
    let target = Target::find("str").unwrap().call();
    let target = target
        .input("x", [1], &[1.0_f32])
        .input("ct_y", [1], &[5.0_f32]);
    assert_eq!(target.run().unwrap().get::<f32>("d_x"), [5.0]);

    let target = Target::find("looped")
        .unwrap()
        .call()
        .value("type", 2.0_f32);
    let target = target
        .input("x", [1], &[1.0_f32])
        .input("match", [1], &[5.0_f32]);
    let outcome = target.run().unwrap();
    assert_eq!(outcome.get::<f32>("match"), [7.0]);
    assert_eq!(outcome.get::<f32>("fn"), [1.0]);

    let target = Target::find("überall")
        .unwrap()
        .call()
        .value("länge", 3_u32);
    let outcome = target.input("x", [1], &[4.0_f32]).run().unwrap();
    assert_eq!(outcome.get::<f32>("größe"), [4.0; 3]);
    let _ = (names::f32, names::str, names::r#loop, names::call);
    let _ = (names::__call, names::Option, names::core, names::überall);
}

/// Constructors of states, under names that the expansion has or once had.
mod constructors {
    use jax_callable::prelude::*;

    pub(crate) struct Plan(u32);

    pub(crate) struct Builder(u32);

    impl Builder {
        const fn new(size: u32) -> Builder {
            Builder(size)
        }

        // By reference: the methods of a trait in scope that take values would come first.
        const fn build(&self) -> Plan {
            Plan(self.0)
        }
    }

    const fn __state(size: u32) -> Plan {
        Plan(size)
    }

    #[allow(non_snake_case)]
    const fn SLOT(size: u32) -> Plan {
        Plan(size)
    }

    #[jax_callable(state = Builder::new(size).build(), output_dims = ())]
    pub(crate) fn builder(size: u32, plan: &State<Plan>, mut y: cpu::ArrayMut<u32, 0>) {
        y[0] = plan.0;
    }

    #[jax_callable(state = __state(__SLOT), output_dims = ())]
    #[allow(non_snake_case)]
    pub(crate) fn by_state(__SLOT: u32, plan: &State<Plan>, mut y: cpu::ArrayMut<u32, 0>) {
        y[0] = plan.0;
    }

    #[jax_callable(state = SLOT(size), output_dims = ())]
    #[allow(non_snake_case)]
    pub(crate) fn __SLOT(size: u32, plan: &State<Plan>, mut y: cpu::ArrayMut<u32, 0>) {
        y[0] = plan.0;
    }
}

#[test]
fn constructors() {
    for (name, size) in [
        ("builder", "size"),
        ("by_state", "__SLOT"),
        ("__SLOT", "size"),
    ] {
        let call = Target::find(name).unwrap().call().value(size, 5_u32);
        assert_eq!(call.run().unwrap().get::<u32>("y"), [5], "{name}");
    }
    let _ = (
        constructors::builder,
        constructors::by_state,
        constructors::__SLOT,
    );
}

mod outer {
    pub(crate) mod inner {
        use jax_callable::prelude::*;

        #[jax_callable]
        pub(in crate::outer) fn nested(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
            y.copy_from_slice(&x);
        }

        #[jax_callable]
        pub(crate) fn exported(
            x: cpu::Array<f32, 1>,
            ct_y: cpu::Array<f32, 1>,
            mut d_x: cpu::ArrayMut<f32, 1>,
        ) {
            let _ = x;
            d_x.copy_from_slice(&ct_y);
        }
    }
    pub(crate) use inner::exported;
    pub(crate) use inner::exported as renamed;

    pub(crate) fn call_nested() {
        let _ = inner::nested;
    }
}

/// Through each name of the same function.
mod derivatives {
    use crate::outer;
    use jax_callable::prelude::*;
    use outer::{exported, renamed as again};

    #[jax_callable(vjp = exported)]
    pub(crate) fn first(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
        y.copy_from_slice(&x);
    }

    #[jax_callable(vjp = outer::renamed)]
    pub(crate) fn second(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
        y.copy_from_slice(&x);
    }

    #[jax_callable(vjp = again)]
    pub(crate) fn third(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
        y.copy_from_slice(&x);
    }
}

#[test]
fn modules_and_exports() {
    outer::call_nested();
    for name in ["nested", "first", "second", "third"] {
        assert_eq!(run(name), [1.0, 2.0], "{name}");
    }
    let _ = (derivatives::first, derivatives::second, derivatives::third);
}

#[test]
fn in_a_function() {
    use jax_callable::prelude::*;

    #[jax_callable]
    fn local(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
        y.copy_from_slice(&x);
    }
    assert_eq!(run("local"), [1.0, 2.0]);
    let _ = local;
}

mod in_macros {
    use jax_callable::prelude::*;

    macro_rules! scaled {
        ($(#[$meta:meta])* $name:ident, $x:ident: $ty:ty, $dim:ident, $factor:expr) => {
            $(#[$meta])*
            #[jax_callable(output_dims(y = $dim))]
            pub(crate) fn $name(#[dims($dim)] $x: $ty, mut y: cpu::ArrayMut<f32, 1>) {
                for (y, x) in y.iter_mut().zip($x.iter()) {
                    *y = $factor * x;
                }
            }
        };
    }
    scaled!(
        /// Documented.
        doubled, x: cpu::Array<f32, 1>, n, 2.0
    );
    scaled!(tripled, x: cpu::Array<'_, f32, 1>, call, 3.0);

    macro_rules! whole {
        ($function:item) => {
            #[jax_callable]
            $function
        };
    }
    whole! {
        pub(crate) fn whole(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
            y.copy_from_slice(&x);
        }
    }

    // A name of the macro's own beside one of its caller's.
    macro_rules! hygienic {
        ($name:ident, $k:ident) => {
            #[jax_callable(output_dims = $k + k)]
            pub(crate) fn $name($k: u32, k: u32, mut y: cpu::ArrayMut<f32, 1>) {
                y.fill(1.0);
            }
        };
    }
    hygienic!(sum_of_sizes, n);
}

#[test]
fn macros() {
    assert_eq!(run("doubled"), [2.0, 4.0]);
    assert_eq!(run("tripled"), [3.0, 6.0]);
    assert_eq!(run("whole"), [1.0, 2.0]);
    let call = Target::find("sum_of_sizes").unwrap().call();
    let outcome = call.value("n", 2_u32).value("k", 3_u32).run().unwrap();
    assert_eq!(outcome.shape("y"), [5]);
    let _ = (
        in_macros::doubled,
        in_macros::tripled,
        in_macros::whole,
        in_macros::sum_of_sizes,
    );
}

mod types {
    use jax_callable::prelude::*;

    pub(crate) const WIDTH: usize = 2;
    pub(crate) struct Layout;
    impl Layout {
        pub(crate) const HEIGHT: usize = 1;
    }
    pub(crate) type Rows<'a, const N: usize> = jax_callable::cpu::Array<'a, [f32; N], 1>;

    #[jax_callable]
    pub(crate) fn packed(
        x: Rows<'_, { WIDTH + 1 }>,
        mut y: ::jax_callable::cpu::ArrayMut<'_, [[f32; WIDTH * 2]; Layout::HEIGHT], { 2 - 1 }>,
    ) -> ::core::result::Result<(), ::std::fmt::Error>
    where
        f32: Copy,
    {
        y[0] = [[0.0, 0.0, 0.0, x[0][2]]];
        Ok(())
    }
}

#[test]
fn types() {
    let target = Target::find("packed").unwrap().call();
    let outcome = target
        .input("x", [1], &[[1.0_f32, 2.0, 3.0]])
        .run()
        .unwrap();
    assert_eq!(outcome.get::<[[f32; 4]; 1]>("y"), [[[0.0, 0.0, 0.0, 3.0]]]);
    let _ = types::packed;
}

mod attributes {
    use jax_callable::prelude::*;

    /// Kept.
    #[cfg_attr(all(), jax_callable)]
    #[inline(never)]
    #[cold]
    #[track_caller]
    #[allow(unused_variables)]
    pub(crate) fn kept(
        #[cfg_attr(all(), allow(unused_mut))] mut x: cpu::Array<f32, 1>,
        #[expect(unused_variables)] k: f32,
        mut y: cpu::ArrayMut<f32, 1>,
    ) -> Result<()> {
        y.copy_from_slice(&x);
        Ok(())
    }

    #[cfg(any())]
    #[jax_callable]
    pub(crate) fn absent(x: NoSuchType) {}

    #[jax_callable]
    #[cfg(any())]
    pub(crate) fn absent(x: NoSuchType) {}

    #[jax_callable]
    #[cfg(not(any()))]
    #[deprecated]
    pub(crate) fn old(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
        y.copy_from_slice(&x);
    }
}

#[test]
fn attributes() {
    assert_eq!(run("old"), [1.0, 2.0]);
    let target = Target::find("kept").unwrap().call();
    let outcome = target.input("x", [1], &[1.0_f32]).value("k", 0.0_f32).run();
    assert_eq!(outcome.unwrap().get::<f32>("y"), [1.0]);
    assert!(Target::find("absent").is_err());
    let _ = attributes::kept;
}
