//! All that can stand in a signature.
#![deny(warnings)]
#![forbid(unsafe_code)]
use jax_callable::prelude::*;

#[jax_callable]
fn scalars(
    cx: &cpu::Context,
    a: bool,
    b: i8,
    c: u64,
    d: f64,
    e: &str,
    f: &[f32],
    g: [i32; 3],
    mut y: cpu::ArrayMut<f32, 0>,
) -> Result<()> {
    let _ = (cx, a, b, c, d, e, f, g);
    y[0] = 1.0;
    Ok(())
}

#[jax_callable(in_out = "y")]
pub fn lifetimes<'a, 'b: 'a>(
    _cx: &'a cpu::Context,
    _name: &'b str,
    _x: cpu::Array<'a, [f32; 3], 1>,
    y: cpu::ArrayMut<'b, [[f64; 2]; 3], 8>,
) -> std::result::Result<(), std::num::ParseIntError> {
    let _ = y;
    Ok(())
}

#[jax_callable]
pub(crate) fn one_output(_out: cpu::ArrayMut<f32, 1>) {}

#[derive(Debug)]
pub struct Failure<'a>(&'a str);

impl std::fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Failure<'_> {}

#[jax_callable]
pub fn error_that_lives(y: cpu::ArrayMut<f32, 1>) -> std::result::Result<(), Failure<'static>> {
    let _ = y;
    Err(Failure("never called"))
}

mod inner {
    use jax_callable::prelude::*;

    #[jax_callable]
    pub(super) fn visible(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
        let _ = (x, y);
    }
}

fn main() {
    let _ = inner::visible;
}
