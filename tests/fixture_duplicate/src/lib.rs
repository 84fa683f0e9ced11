//! A library that must be refused: two functions claim one name.

/// The first claim.
mod first {
    use jax_callable::prelude::*;

    #[jax_callable]
    fn twice(x: cpu::Array<f32, 1>, mut out: cpu::ArrayMut<f32, 1>) {
        out.copy_from_slice(&x);
    }
}

/// The second claim, under another name in Rust.
mod second {
    use jax_callable::prelude::*;

    #[jax_callable(name = "twice")]
    fn another(x: cpu::Array<i32, 1>, mut out: cpu::ArrayMut<i32, 1>) {
        out.copy_from_slice(&x);
    }
}
