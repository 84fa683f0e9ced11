//! The runtime under another name.
#![deny(warnings)]
pub extern crate jax_callable as renamed;

mod facade {
    pub use renamed as runtime;
}
use renamed::{cpu, jax_callable};

#[jax_callable(crate = renamed)]
fn direct(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

#[jax_callable(crate = crate::facade::runtime)]
fn behind_a_facade(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

macro_rules! callable {
    ($name:ident) => {
        #[jax_callable(crate = $crate::facade::runtime)]
        fn $name(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
            let _ = (x, y);
        }
    };
}
callable!(from_a_macro);

fn main() {}
