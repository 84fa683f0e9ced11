//! A function with a mistake can be called and named, and its module is there: the mistake is
//! the only error.
#![deny(warnings)]

mod ops {
    use jax_callable::prelude::*;

    #[jax_callable(in_out = missing)]
    pub fn key(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
        let _ = (x, y);
    }

    #[jax_callable(in_out "y")]
    pub fn syntax(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
        let _ = (x, y);
    }

    #[jax_callable]
    pub fn signature<T>(x: T, y: cpu::ArrayMut<f32, 1>) -> T {
        let _ = y;
        x
    }

    #[jax_callable]
    pub fn no_body(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>);

    #[jax_callable(vjp = syntax)]
    pub fn forward(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
        let _ = (x, y);
    }
}

pub use ops::{forward, key, no_body as other, syntax};

pub fn call(x: jax_callable::cpu::Array<f32, 1>, y: jax_callable::cpu::ArrayMut<f32, 1>) -> i32 {
    if y.is_empty() {
        other(x, y);
        return 0;
    }
    if x.is_empty() {
        syntax(x, y);
        return 1;
    }
    if x.len() == 1 {
        key(x, y);
        return 2;
    }
    ops::signature(3, y)
}

fn main() {}
