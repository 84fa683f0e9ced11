//! Errors and panics whose own code panics.

use super::*;
use std::fmt;

/// Panics where the runtime describes or drops it.
struct Hostile {
    display: bool,
    drop: bool,
}

impl fmt::Debug for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hostile")
    }
}

impl fmt::Display for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hostile")
    }
}

/// Hides `Hostile` as the source, which is described late.
#[derive(Debug)]
struct Source(Hostile);

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert!(!self.0.display, "display panicked");
        write!(f, "a {}", self.0)
    }
}

impl std::error::Error for Source {}

#[derive(Debug)]
struct Outer(Source);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("outer")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl Drop for Outer {
    fn drop(&mut self) {
        assert!(!self.0.0.drop, "drop panicked");
    }
}

/// Fails with an error that misbehaves as asked.
#[jax_callable]
fn fails(
    display: bool,
    drop: bool,
    x: cpu::Array<f32, 1>,
    mut y: cpu::ArrayMut<f32, 1>,
) -> Result<()> {
    y.copy_from_slice(&x);
    Err(Outer(Source(Hostile { display, drop })))?
}

#[test]
fn an_error_that_panics_is_still_an_error() {
    let call = |display: bool, drop: bool| {
        let target = crate::testing::Target::find("fails").unwrap();
        let call = target.call().value("display", display).value("drop", drop);
        let Err(error) = call.input("x", [1], &[1.0_f32]).run() else {
            panic!("it fails");
        };
        error
    };
    let error = call(false, false);
    assert_eq!(error.code(), Code::Unknown);
    assert_eq!(error.to_string(), "jax_callable.fails: outer: a hostile");
    for (display, drop, text) in [
        (true, false, "panicked: display panicked"),
        (false, true, "panicked: drop panicked"),
    ] {
        let error = call(display, drop);
        assert_eq!(error.code(), Code::Internal);
        assert_eq!(error.to_string(), format!("jax_callable.fails: {text}"));
    }
}
