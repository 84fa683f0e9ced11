//! Where callables can stand, what they can be called and which attributes they keep.
#![deny(warnings, missing_docs)]
use jax_callable::prelude::*;

/// Raw names.
#[jax_callable]
pub fn r#loop(r#type: cpu::Array<f32, 1>, r#match: cpu::ArrayMut<f32, 1>) {
    let _ = (r#type, r#match);
}

#[allow(non_snake_case)]
#[jax_callable]
#[inline]
fn Camel(#[allow(unused_variables)] x: cpu::Array<f32, 1>, #[allow(unused)] y: cpu::ArrayMut<f32, 1>) {
}

#[cfg(any())]
#[jax_callable]
fn configured_out(x: NoSuchType) {}

#[jax_callable]
#[cfg(any())]
fn configured_out_too(x: NoSuchType) {}

#[jax_callable]
#[deprecated]
fn deprecated(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

macro_rules! callables {
    ($($name:ident: $ty:ty, $rank:literal, $dims:expr;)*) => {$(
        #[jax_callable(output_dims = $dims, num_outputs = 1)]
        fn $name(#[dims($dims)] x: cpu::Array<$ty, $rank>, y: cpu::ArrayMut<$ty, $rank>) {
            let _ = (x, y);
        }
    )*};
}
callables! {
    for_f32: f32, 1, n;
    for_f64: f64, 1, n;
}

fn main() {
    #[jax_callable]
    fn local(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
        let _ = (x, y);
    }
    let _ = local;
}
