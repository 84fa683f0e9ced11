//! The expansion raises no lint of its own.
#![deny(
    warnings,
    missing_docs,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    unused_lifetimes,
    unused_qualifications,
    single_use_lifetimes,
    rust_2018_idioms,
    let_underscore,
    keyword_idents,
    non_ascii_idents,
    missing_debug_implementations,
    trivial_casts,
    trivial_numeric_casts,
    unit_bindings,
    clippy::all
)]
use jax_callable::prelude::*;

/// Documented.
#[jax_callable(in_out = "y", output_dims(z = (2 * n, 4)), vjp = backward)]
pub(crate) fn forward(
    cx: &cpu::Context,
    name: &str,
    #[dims(n)] x: cpu::Array<'_, f32, 1>,
    #[dims(n)] y: cpu::ArrayMut<'_, f32, 1>,
    z: cpu::ArrayMut<'_, f32, 2>,
) -> Result<()> {
    let _ = (cx, name, x, y, z);
    Ok(())
}

#[jax_callable(in_out = d_y)]
fn backward(
    ct_z: cpu::Array<'_, f32, 2>,
    d_y: cpu::ArrayMut<'_, f32, 1>,
    d_x: cpu::ArrayMut<'_, f32, 1>,
) {
    let _ = (ct_z, d_y, d_x);
}

mod inner {
    use super::*;

    type Input<'a> = cpu::Array<'a, f32, 1>;

    #[jax_callable]
    fn private(x: Input<'_>, y: cpu::ArrayMut<'_, f32, 1>) {
        let _ = (x, y);
    }
}

fn main() {}
