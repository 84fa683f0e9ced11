//! Promises kept and broken.

use super::*;
use crate::prelude::*;
use crate::testing::Target;

/// y[i] <- w[0] x[i] + y[i], in place, and size[i] <- the sum of row i.
#[jax_callable(in_out = y, batch_dims = n)]
fn kept(
    #[dims(m)] w: cpu::Array<i32, 1>,
    #[dims(n, m)] x: cpu::Array<[i32; 2], 2>,
    #[dims(n, m)] mut y: cpu::ArrayMut<[i32; 2], 2>,
    #[dims(n)] mut size: cpu::ArrayMut<i64, 1>,
) {
    let m = w.len();
    for i in 0..x.dim(0) {
        size[i] = 0;
        for j in 0..m {
            for k in 0..2 {
                y[[i, j]][k] += w[0] * x[[i, j]][k];
                size[i] += i64::from(y[[i, j]][k]);
            }
        }
    }
}

/// As many numbers as x has before each: the second result breaks the promise.
#[jax_callable(batch_dims = n)]
fn broken(
    #[dims(n)] x: cpu::Array<f64, 1>,
    mut out: cpu::ArrayMut<f64, 1>,
    #[dims(n)] mut place: cpu::ArrayMut<[u16; 3], 1>,
) {
    out.copy_from_slice(&x);
    for (i, place) in place.iter_mut().enumerate() {
        *place = [1, 1, i as u16];
    }
}

/// m is promised, too, but all of y is in each result, which has no m.
#[jax_callable(batch_dims = (n, m))]
fn bystander(
    #[dims(n)] x: cpu::Array<f32, 1>,
    #[dims(m)] y: cpu::Array<f32, 1>,
    #[dims(n)] mut out: cpu::ArrayMut<f32, 1>,
) {
    let sum: f32 = y.iter().map(|y| y * y).sum();
    out.iter_mut()
        .zip(x.iter())
        .for_each(|(out, x)| *out = x + sum);
}

#[jax_callable(batch_dims = n)]
fn needs_three(#[dims(n)] x: cpu::Array<f32, 1>, mut out: cpu::ArrayMut<f32, 1>) -> Result<()> {
    if x.len() < 3 {
        return Err(Error::out_of_range("too few"));
    }
    out.copy_from_slice(&x);
    Ok(())
}

fn call(name: &str) -> Call {
    Target::find(name).unwrap().call()
}

fn message(result: Result<()>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn promises() {
    let rows = call("kept").input("w", [2], &[3, 4]);
    let rows = rows.random_input("x", [5, 2]).random_input("y", [5, 2]);
    rows.check_batch_dims().unwrap();
    assert!(
        message(call("broken").random_input("x", [4]).check_batch_dims()).ends_with(
            ".broken: batch_dims promises that `n` is independent, but `place` depends on more: \
             run on `n` = 1..2 alone, it differs from the whole at [0, 2]. Take `n` out of \
             batch_dims"
        )
    );
    let both = call("bystander")
        .random_input("x", [3])
        .random_input("y", [4]);
    let error = message(both.check_batch_dims());
    assert!(error.contains("`m` is independent, but `out` depends on more: run on `m` = 0..1"));
    let error = call("needs_three")
        .random_input("x", [3])
        .check_batch_dims();
    let error = error.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(
        error
            .to_string()
            .contains("it fails when run on `n` = 0..1 alone: ")
    );
    assert!(error.to_string().ends_with("too few"), "{error}");
}

#[test]
#[should_panic = "`kept`: nothing can be cut along `n`: give arrays in which it is 2 or more"]
fn nothing_to_cut() {
    let rows = call("kept")
        .input("w", [2], &[3, 4])
        .random_input("x", [1, 2]);
    let _ = rows.random_input("y", [1, 2]).check_batch_dims();
}

#[test]
#[should_panic = "has no `batch_dims`"]
fn nothing_promised() {
    let _ = call("free").random_input("x", [3]).check_batch_dims();
}

#[jax_callable]
fn free(x: cpu::Array<f32, 1>, mut out: cpu::ArrayMut<f32, 1>) {
    out.copy_from_slice(&x);
}

#[test]
fn small_integers_are_what_they_should_be() {
    let mut state = 7;
    let mut seen: Vec<i8> = (0..1000).map(|_| small_integer(&mut state)).collect();
    seen.sort_unstable();
    seen.dedup();
    let all: Vec<i8> = (-8..=8).filter(|&value| value != 0).collect();
    assert_eq!(seen, all);
}

#[cfg(feature = "half")]
#[test]
fn small_integers_in_16_bits() {
    for value in (-8..=8).filter(|&value| value != 0) {
        let [a, b] = encode(DataType::F16, value, 1)[..] else {
            panic!("two bytes")
        };
        assert_eq!(half::f16::from_ne_bytes([a, b]).to_f32(), f32::from(value));
        let [a, b] = encode(DataType::Bf16, value, 1)[..] else {
            panic!("two bytes")
        };
        assert_eq!(half::bf16::from_ne_bytes([a, b]).to_f32(), f32::from(value));
    }
}

#[test]
#[should_panic = "an input has a shape and no data"]
fn a_shape_alone_is_not_run() {
    let _ = call("free").input_shape("x", [3]).run();
}
