//! The expansion raises no lint of its own: not the compiler's, and not Clippy's, which
//! `cargo xtask lint` runs here too.
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
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_docs_in_private_items,
    clippy::multiple_unsafe_ops_per_block,
    clippy::wildcard_imports,
    clippy::unwrap_used,
    clippy::panic,
    clippy::exhaustive_enums,
    clippy::missing_inline_in_public_items
)]
// What these say of the author's functions is true.
#![allow(
    clippy::needless_pass_by_value,
    clippy::missing_const_for_fn,
    clippy::unnecessary_wraps,
    clippy::many_single_char_names
)]
#![forbid(unsafe_code)]

use jax_callable::prelude::{Result, State, cpu, jax_callable};

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

/// Documented.
#[jax_callable(in_out = d_y)]
fn backward(
    ct_z: cpu::Array<'_, f32, 2>,
    d_y: cpu::ArrayMut<'_, f32, 1>,
    d_x: cpu::ArrayMut<'_, f32, 1>,
) {
    let _ = (ct_z, d_y, d_x);
}

/// Documented.
mod inner {
    use super::{cpu, jax_callable};

    /// Documented.
    type Input<'a> = cpu::Array<'a, f32, 1>;

    /// Documented.
    #[jax_callable]
    fn private(x: Input<'_>, y: cpu::ArrayMut<'_, f32, 1>) {
        let _ = (x, y);
    }
}

/// Parameters that only the attribute uses are used.
#[jax_callable(state = u64::from(seed))]
fn sizes(seed: u32, k: i32, table: &State<u64>, #[dims(2 * k, k)] y: cpu::ArrayMut<'_, f32, 2>) {
    let _ = (table, y);
}

/// Only the author's function has many parameters, and it is the author's to say so.
#[expect(clippy::too_many_arguments)]
#[jax_callable]
fn many(
    a: f32,
    b: f32,
    c: f32,
    d: f32,
    e: f32,
    f: f32,
    g: f32,
    h: f32,
    i: f32,
    y: cpu::ArrayMut<'_, f32, 0>,
) {
    let _ = (a, b, c, d, e, f, g, h, i, y);
}
