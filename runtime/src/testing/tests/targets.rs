//! Functions of every kind, and a sound call of each.

use super::*;
use crate::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

macro_rules! copies {
    ($($name:ident: $ty:ty = $values:expr;)*) => {
        $(
            #[jax_callable]
            fn $name(x: cpu::Array<$ty, 1>, mut y: cpu::ArrayMut<$ty, 1>) {
                y.copy_from_slice(&x);
            }
        )*

        /// A call for each element type.
        fn copies() -> Vec<(&'static str, Call)> {
            vec![$((stringify!($name), call(stringify!($name)).input::<$ty>("x", [3], &$values)),)*]
        }
    };
}

copies! {
    copy_pred: Pred = [Pred::TRUE, Pred::FALSE, Pred::TRUE];
    copy_i8: i8 = [1, -2, 3];
    copy_i16: i16 = [1, -2, 3];
    copy_i32: i32 = [1, -2, 3];
    copy_i64: i64 = [1, -2, 3];
    copy_u8: u8 = [1, 2, 3];
    copy_u16: u16 = [1, 2, 3];
    copy_u32: u32 = [1, 2, 3];
    copy_u64: u64 = [1, 2, 3];
    copy_f32: f32 = [1.0, -2.0, 3.0];
    copy_f64: f64 = [1.0, -2.0, 3.0];
    copy_f8: crate::f8::F8E4M3FN = [1.0, -2.0, 3.0].map(crate::f8::F8E4M3FN::from_f32);
    copy_vectors: [f32; 2] = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    copy_matrices: [[i16; 3]; 2] = [[[1, 2, 3], [4, 5, 6]]; 3];
}

#[cfg(feature = "half")]
mod half {
    use super::*;

    copies! {
        copy_f16: f16 = [1.0, -2.0, 3.0].map(f16::from_f32);
        copy_bf16: bf16 = [1.0, -2.0, 3.0].map(bf16::from_f32);
    }

    pub(super) fn calls() -> Vec<(&'static str, Call)> {
        copies()
    }
}

#[cfg(feature = "num-complex")]
mod complex {
    use super::*;

    copies! {
        copy_c64: Complex<f32> = [Complex::new(1.0, 2.0); 3];
        copy_c128: Complex<f64> = [Complex::new(1.0, 2.0); 3];
    }

    pub(super) fn calls() -> Vec<(&'static str, Call)> {
        let mut calls = copies();
        let rotate = call("rotate").value("by", Complex::new(0.0_f64, 1.0));
        let rotate = rotate.value("path", [Complex::new(1.0_f32, 0.0); 2]);
        calls.push((
            "rotate",
            rotate.input("x", [1], &[Complex::new(1.0_f64, 2.0)]),
        ));
        calls
    }

    #[jax_callable]
    fn rotate(
        by: Complex<f64>,
        path: &[Complex<f32>],
        x: cpu::Array<Complex<f64>, 1>,
        mut y: cpu::ArrayMut<Complex<f64>, 1>,
    ) {
        assert_eq!(path.len(), 2);
        y.iter_mut().zip(x.iter()).for_each(|(y, x)| *y = by * x);
    }
}

/// y <- a x + y, in place, and the sum of the new y.
#[jax_callable(in_out = "y")]
fn axpy_sum(
    a: f32,
    offset: i32,
    #[dims(n)] x: cpu::Array<f32, 1>,
    #[dims(n)] mut y: cpu::ArrayMut<f32, 1>,
    #[dims()] mut sum: cpu::ArrayMut<f32, 0>,
) {
    for (y, x) in y.iter_mut().zip(x.iter()) {
        *y += a * x + offset as f32;
    }
    sum[[]] = y.iter().sum();
}

/// Two in-outs of other types and ranks, and no input.
#[jax_callable(in_out = ("a", "b"))]
fn turn(mut a: cpu::ArrayMut<u8, 2>, mut b: cpu::ArrayMut<f64, 1>) {
    a.reverse();
    b.reverse();
}

/// Numbers of every width as static attributes.
#[jax_callable(output_dims = n)]
#[allow(clippy::too_many_arguments)]
fn numbers(
    flag: bool,
    i8: i8,
    i16: i16,
    i64: i64,
    u8: u8,
    u16: u16,
    u32: u32,
    u64: u64,
    f64: f64,
    n: u32,
    mut y: cpu::ArrayMut<f64, 1>,
) {
    let sum = i64::from(i8) + i64::from(i16) + i64 + i64::from(u8) + i64::from(u16);
    let sum = sum as f64 + f64::from(u32) + u64 as f64 + f64;
    y.fill(if flag { sum } else { -sum });
    let _ = n;
}

/// Strings and lists as static attributes.
#[jax_callable]
fn texts(
    name: &str,
    bytes: &[u8],
    weights: &[f32],
    flags: &[bool],
    window: [i16; 3],
    #[dims(n)] x: cpu::Array<f32, 1>,
    #[dims(n + 2)] mut y: cpu::ArrayMut<f32, 1>,
) {
    assert_eq!(bytes.len() + flags.len(), 5);
    y.fill(name.len() as f32 + weights.iter().sum::<f32>());
    y[0] += x.iter().sum::<f32>();
    y[1] += f32::from(window[0] + window[2]);
}

/// The sum of a table, to which nothing else has a relation.
#[jax_callable]
fn lookup(table: cpu::Array<i8, 2>, #[dims(2)] mut y: cpu::ArrayMut<i32, 1>) {
    y.fill(table.iter().map(|&x| i32::from(x)).sum());
}

#[jax_callable]
fn matmul(
    #[dims(n, k)] a: cpu::Array<i32, 2>,
    #[dims(k, m)] b: cpu::Array<i32, 2>,
    #[dims(n, m)] mut c: cpu::ArrayMut<i32, 2>,
) {
    for i in 0..a.dim(0) {
        for j in 0..b.dim(1) {
            let terms = (0..a.dim(1)).map(|k| a[[i, k]].wrapping_mul(b[[k, j]]));
            c[[i, j]] = terms.fold(0, i32::wrapping_add);
        }
    }
}

/// Prefix sums by way of a workspace, of which one is left full.
#[jax_callable]
fn prefix_sums(
    #[dims(n)] x: cpu::Array<u32, 1>,
    #[dims(n + 1)] mut sums: cpu::Scratch<u64, 1>,
    #[dims(n)] mut y: cpu::ArrayMut<u64, 1>,
    #[dims(x.dim(0), 2)] mut marks: cpu::Scratch<[u8; 3], 2>,
) {
    sums[0] = 0;
    for i in 0..x.len() {
        sums[i + 1] = sums[i].wrapping_add(u64::from(x[i]));
        y[i] = sums[i + 1];
    }
    marks.fill([0xFF; 3]);
}

struct Table {
    values: Vec<f32>,
    uses: AtomicU32,
}

impl Table {
    fn new(values: &[f32]) -> Table {
        let uses = AtomicU32::new(0);
        let values = values.to_vec();
        Table { values, uses }
    }
}

#[jax_callable(state = Table::new(values))]
fn scale(
    values: &[f32],
    table: &State<Table>,
    x: cpu::Array<f32, 1>,
    mut y: cpu::ArrayMut<f32, 1>,
) {
    assert_eq!(table.uses.fetch_add(1, Ordering::Relaxed), 0);
    for (i, (y, x)) in y.iter_mut().zip(x.iter()).enumerate() {
        *y = x * table.values[i % values.len()];
    }
}

#[jax_callable]
fn scalar(x: cpu::Array<f64, 0>, mut y: cpu::ArrayMut<f64, 0>) {
    y[[]] = 2.0 * x[[]];
}

#[jax_callable]
fn deep(x: cpu::Array<[i8; 2], 8>, mut y: cpu::ArrayMut<[i8; 2], 8>) {
    y.copy_from_slice(&x);
}

/// Arithmetic on dimensions, and a shape from a number.
#[jax_callable]
fn arithmetic(
    k: u8,
    #[dims(n, 2 * n)] x: cpu::Array<f32, 2>,
    #[dims(n / 2 + k, (n % 3).max(k), n.div_ceil(2))] mut y: cpu::ArrayMut<f32, 3>,
) {
    y.fill(x.iter().sum());
}

#[jax_callable]
fn in_parallel(cx: &cpu::Context, x: cpu::Array<u16, 1>, mut y: cpu::ArrayMut<u16, 1>) {
    assert_eq!(cx.device_ordinal().unwrap(), 3);
    cx.par_chunks_mut(&mut y, 2, |start, chunk| {
        for (y, x) in chunk.iter_mut().zip(&x[start..]) {
            *y = x.wrapping_mul(2);
        }
    });
}

/// What it writes depends on all of its shapes, whichever were chosen.
#[jax_callable(output_dims(y = (2, n), z = n))]
fn chosen(
    #[dims(n)] x: cpu::Array<f32, 1>,
    mut y: cpu::ArrayMut<f32, 2>,
    mut z: cpu::ArrayMut<u8, 1>,
) {
    let (rows, columns) = (y.dim(0), y.dim(1));
    y.fill(x.iter().sum::<f32>() + rows as f32 + 10.0 * columns as f32);
    z.fill(x.len() as u8);
}

fn call(name: &str) -> Call {
    Target::find(name).unwrap().call()
}

/// Every target, batched and not, with empty arrays, in-outs in one buffer and in two.
pub(crate) fn calls() -> Vec<(&'static str, Call)> {
    let x = [
        1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0,
    ];
    let mut calls = copies();
    #[cfg(feature = "half")]
    calls.extend(half::calls());
    #[cfg(feature = "num-complex")]
    calls.extend(complex::calls());

    let axpy = call("axpy_sum").value("a", 2.0_f32).value("offset", -1);
    let plain = axpy
        .clone()
        .input("x", [3], &x[..3])
        .input("y", [3], &x[3..6]);
    calls.push(("in-out", plain.clone()));
    calls.push(("in-out, in two buffers", plain.alias_in_outs(false)));
    let empty = axpy
        .clone()
        .input("x", [0], &x[..0])
        .input("y", [0], &x[..0]);
    calls.push(("empty", empty));
    let batch = axpy.clone().batch_size(2).input("x", [3], &x[..3]);
    let batch = batch.batched_input("y", [3], &x[3..9]);
    calls.push(("batch", batch.clone()));
    calls.push(("batch, in two buffers", batch.alias_in_outs(false)));
    let nested = axpy.clone().batch_sizes([2, 3]);
    let nested = nested.input_along("x", [false, true], [2], &x[..6]);
    calls.push(("nested batch", nested.batched_input("y", [2], &x)));
    let shared = axpy
        .clone()
        .batch_size(3)
        .input_along("x", [], [2], &x[..2]);
    calls.push(("shared by a batch", shared.batched_input("y", [2], &x[..6])));
    let none = axpy.batch_size(0).input("x", [2], &x[..2]);
    calls.push(("empty batch", none.batched_input("y", [2], &x[..0])));

    let bytes = [1_u8, 2, 3, 4, 5, 6];
    let two = call("turn")
        .input("a", [3, 2], &bytes)
        .input("b", [2], &[1.0_f64, 2.0]);
    calls.push(("two in-outs", two.clone()));
    calls.push(("two in-outs, in four buffers", two.alias_in_outs(false)));

    let numbers = call("numbers").value("flag", true).value("i8", -1_i8);
    let numbers = numbers.value("i16", -2_i16).value("i64", i64::MIN / 8);
    let numbers = numbers
        .value("u8", 3_u8)
        .value("u16", 4_u16)
        .value("u32", 5_u32);
    let numbers = numbers
        .value("u64", u64::MAX)
        .value("f64", 0.5)
        .value("n", 3_u32);
    calls.push(("numbers", numbers.clone()));
    calls.push(("chosen output", numbers.output_dims("y", [3])));

    let texts = call("texts")
        .value("name", "naïve")
        .value("bytes", [1_u8, 2, 3]);
    let texts = texts
        .value("weights", [0.5_f32, 0.25])
        .value("flags", [true, false]);
    let texts = texts.value("window", [1_i16, 2, 3]);
    calls.push(("texts", texts.clone().input("x", [3], &x[..3])));
    let texts = texts
        .value("name", "")
        .value("weights", [0.0_f32; 0])
        .batch_size(2);
    calls.push(("texts of a batch", texts.batched_input("x", [2], &x[..4])));

    calls.push((
        "table",
        call("lookup").input("table", [2, 2], &[1_i8, 2, 3, 4]),
    ));
    calls.push((
        "empty table",
        call("lookup").input("table", [2, 0], &[0_i8; 0]),
    ));
    let tables = call("lookup")
        .batch_size(2)
        .batched_input("table", [1, 2], &[1_i8, 2, 3, 4]);
    calls.push(("tables", tables));
    let matmul = call("matmul").input("a", [2, 2], &[1, 2, 3, 4]);
    calls.push(("matmul", matmul.input("b", [2, 1], &[5, 6])));
    let matmul = call("matmul").batch_sizes([2, 1]);
    let matmul = matmul.input_along("a", [true, false], [1, 2], &[1, 2, 3, 4]);
    let matmul = matmul.input_along("b", [false, true], [2, 1], &[5, 6]);
    calls.push(("matmuls", matmul));

    calls.push((
        "scratch",
        call("prefix_sums").input("x", [3], &[1_u32, 2, 3]),
    ));
    let batch = call("prefix_sums")
        .batch_size(2)
        .batched_input("x", [2], &[1_u32, 2, 3, 4]);
    calls.push(("scratch of a batch", batch));
    let state = call("scale").value("values", [2.0_f32, 3.0]);
    calls.push(("state", state.input("x", [3], &x[..3])));

    calls.push(("scalar", call("scalar").input("x", [], &[1.0_f64])));
    let scalars = call("scalar")
        .batch_size(3)
        .batched_input("x", [], &[1.0_f64, 2.0, 3.0]);
    calls.push(("scalars", scalars));
    let deep = call("deep").input("x", [1, 2, 1, 1, 2, 1, 1, 1], &[[1_i8, 2]; 4]);
    calls.push(("eight dimensions", deep));
    let dims = call("arithmetic").value("k", 2_u8);
    calls.push(("arithmetic", dims.input("x", [2, 4], &x[..8])));
    let parallel = call("in_parallel").device_ordinal(3).num_threads(3);
    calls.push(("threads", parallel.input("x", [5], &[1_u16, 2, 3, 4, 5])));
    let chosen = call("chosen").input("x", [2], &x[..2]);
    calls.push(("shapes by rule", chosen.clone()));
    calls.push(("chosen shapes", chosen.output_dims("y", [3, 1])));
    let chosen = call("chosen").batch_size(2).output_dims("y", [3, 1]);
    calls.push((
        "chosen shapes of a batch",
        chosen.batched_input("x", [2], &x[..4]),
    ));
    calls
}
