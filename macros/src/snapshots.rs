//! The expansions of typical signatures as text, and how large they may be: what is generated
//! is compiled with every crate that uses it.
//!
//! After a change that is meant, `INSTA_UPDATE=always cargo test -p jax-callable-macros` writes
//! the texts anew.

use crate::tests::{count, expand, tokens};

/// The tokens of the expansion without those of the function itself.
fn size(attribute: &str, item: &str) -> usize {
    let expansion = count(crate::callable(tokens(attribute), tokens(item)));
    expansion - count(tokens(item))
}

macro_rules! signatures {
    ($($name:ident, at most $budget:literal: [$($attribute:tt)*] $item:item)*) => {$(
        #[test]
        fn $name() {
            let (attribute, item) = (stringify!($($attribute)*), stringify!($item));
            let version = concat!("\"", env!("CARGO_PKG_VERSION"), "\"");
            let text = expand(attribute, item).replace(version, "VERSION");
            insta::assert_snapshot!(text);
            let size = size(attribute, item);
            assert!(size <= $budget, "{size} tokens");
        }
    )*};
}

signatures! {
    one_output, at most 500: []
    fn f(mut y: cpu::ArrayMut<f32, 1>) { body() }

    elementwise, at most 590: []
    fn f(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) { body() }

    in_out, at most 670: [in_out = "y"]
    fn f(a: f32, x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) -> Result<()> { body() }

    named_dims, at most 770: []
    fn f(
        #[dims(n, k)] a: cpu::Array<f32, 2>,
        #[dims(k, m)] b: cpu::Array<f32, 2>,
        #[dims(n, m)] c: cpu::ArrayMut<f32, 2>,
    ) { body() }

    computed_dims, at most 850: [output_dims(y = (2 * n + 1).div_ceil(k))]
    fn f(k: u32, #[dims(n)] x: cpu::Array<f64, 1>, y: cpu::ArrayMut<f64, 1>) { body() }

    statics, at most 900: [has_side_effect, vmap_method = "sequential"]
    fn f(
        name: &str,
        taps: &[f32],
        origin: [f64; 3],
        exact: bool,
        y: cpu::ArrayMut<[f32; 3], 1>,
    ) -> Result<(), Failure> { body() }

    with_state, at most 1030: [state = Plan::new(k)]
    fn f(k: u32, plan: &State<Plan>, x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) { body() }

    with_vjp, at most 800: [vjp = backward, batch_dims = n]
    fn f(#[dims(n)] x: cpu::Array<f32, 1>, #[dims(n)] y: cpu::ArrayMut<f32, 1>) { body() }

    staged_graph, at most 1010: [graph_mode = WarpStaged, stage_in = x, modules = kernels]
    fn f(
        cx: &cuda::Context,
        #[dims(n)] x: cuda::Array<f32, 1>,
        #[dims(2 * n)] work: cuda::Scratch<f32, 1>,
        y: cuda::ArrayMut<f32, 1>,
    ) -> Result<()> { body() }

    aliases, at most 1370: [in_out = y, num_outputs = 1]
    fn f(x: Input, y: Output) { body() }
}
