//! Calls of real functions through `testing`, one of each kind and all of them small: this is what
//! `cargo xtask miri` interprets.

use jax_callable::prelude::*;
use jax_callable::testing::{Call, Target};
use std::sync::atomic::{AtomicU32, Ordering};

fn call(name: &str) -> Call {
    Target::find(name).unwrap().call()
}

/// y <- a x + y, in place.
#[jax_callable(in_out = "y")]
fn axpy(a: f32, x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
    for (y, x) in y.iter_mut().zip(x.iter()) {
        *y += a * x;
    }
}

#[test]
fn in_outs_in_one_buffer_and_in_two() {
    for minor in 1..=5 {
        for alias in [true, false] {
            let call = call("axpy").api_version(minor).alias_in_outs(alias);
            let call = call.value("a", 2.0_f32).input("x", [2], &[1.0_f32, 2.0]);
            let outcome = call.input("y", [2], &[10.0_f32, 20.0]).run().unwrap();
            assert_eq!(outcome.get::<f32>("y"), [12.0, 24.0]);
        }
    }
}

#[test]
fn empty_arrays() {
    let call = call("axpy").value("a", 2.0_f32);
    let call = call.input::<f32>("x", [0], &[]);
    let outcome = call.input::<f32>("y", [0], &[]).run().unwrap();
    assert!(outcome.get::<f32>("y").is_empty());
}

macro_rules! element_types {
    ($($name:ident: $ty:ty = $values:expr;)*) => {
        mod each {
            use super::*;
            $(
                /// y <- x, backwards, and z <- x in place.
                #[jax_callable(in_out = "z")]
                fn $name(
                    #[dims(n)] x: cpu::Array<$ty, 1>,
                    #[dims(n)] mut z: cpu::ArrayMut<$ty, 1>,
                    #[dims(n)] mut y: cpu::ArrayMut<$ty, 1>,
                ) {
                    let n = x.len();
                    for i in 0..n {
                        y[[i]] = x[[n - 1 - i]];
                    }
                    z.copy_from_slice(&x);
                }
            )*
        }

        #[test]
        fn all_element_types() {
            $({
                let values: [$ty; 3] = $values;
                let mut backwards = values;
                backwards.reverse();
                let call = call(stringify!($name)).input("x", [3], &values);
                let outcome = call.input("z", [3], &backwards).run().unwrap();
                assert_eq!(outcome.get::<$ty>("y"), backwards);
                assert_eq!(outcome.get::<$ty>("z"), values);
            })*
        }
    };
}

element_types! {
    preds: Pred = [Pred::TRUE, Pred::FALSE, Pred::TRUE];
    i8s: i8 = [-128, 0, 127];
    i16s: i16 = [-1, 0, 1];
    i32s: i32 = [-1, 0, i32::MAX];
    i64s: i64 = [-1, 0, i64::MIN];
    u8s: u8 = [0, 1, 255];
    u16s: u16 = [0, 1, 65535];
    u32s: u32 = [0, 1, 2];
    u64s: u64 = [0, 1, u64::MAX];
    f32s: f32 = [-0.5, 0.0, f32::INFINITY];
    f64s: f64 = [-0.5, 0.0, f64::MIN_POSITIVE];
    vectors: [f32; 3] = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]];
    matrices: [[i16; 2]; 2] = [[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]];
}

/// The static attributes, as text.
#[jax_callable(output_dims(out = len))]
#[expect(clippy::too_many_arguments, reason = "one of each kind")]
fn describe(
    len: u32,
    flag: bool,
    small: i8,
    large: u64,
    number: f64,
    text: &str,
    list: &[i16],
    flags: &[bool],
    three: [u8; 3],
    mut out: cpu::ArrayMut<u8, 1>,
) {
    let all = format!("{flag} {small} {large} {number} {text} {list:?} {flags:?} {three:?}");
    out.copy_from_slice(all.as_bytes());
}

#[test]
fn attributes() {
    for (text, list) in [("", &[][..]), ("é\0x", &[-1_i16, 2, 3, 4, 5][..])] {
        let expected = format!(
            "true -1 {} -0.5 {text} {list:?} [true, false] [1, 2, 255]",
            u64::MAX
        );
        let call = call("describe").value("len", expected.len() as u32);
        let call = call
            .value("flag", true)
            .value("small", -1_i8)
            .value("large", u64::MAX);
        let call = call
            .value("number", -0.5)
            .value("text", text)
            .value("list", list);
        let call = call
            .value("flags", [true, false])
            .value("three", [1_u8, 2, 255]);
        let outcome = call.run().unwrap();
        assert_eq!(String::from_utf8(outcome.get("out")).unwrap(), expected);
    }
}

#[test]
fn attributes_that_are_missing_or_others() {
    let call = || {
        call("axpy")
            .input("x", [1], &[1.0_f32])
            .input("y", [1], &[1.0_f32])
    };
    let error = |call: Call| call.run().err().unwrap().to_string();
    assert!(error(call()).contains("`a` is missing"));
    assert!(
        error(call().value("a", "2")).contains("expected the bits of one float32, got a string")
    );
    assert!(error(call().value("a", -1_i64)).contains("does not hold the bits"));
    assert!(error(call().value("a", [2_u8])).contains("got a uint8 array of 1"));
}

/// c <- a b, of matrices, and what is in scratch is never read.
#[jax_callable]
fn product(
    #[dims(n, k)] a: cpu::Array<i32, 2>,
    #[dims(k, m)] b: cpu::Array<i32, 2>,
    #[dims(m)] mut row: cpu::Scratch<i64, 1>,
    #[dims(n, m)] mut c: cpu::ArrayMut<i32, 2>,
    #[dims()] mut sum: cpu::ArrayMut<i32, 0>,
) {
    sum[[]] = 0;
    for i in 0..a.dim(0) {
        row.fill(0);
        for j in 0..b.dim(1) {
            for l in 0..b.dim(0) {
                row[[j]] += i64::from(a[[i, l]] * b[[l, j]]);
            }
            c[[i, j]] = row[[j]] as i32;
            sum[[]] += c[[i, j]];
        }
    }
}

#[test]
fn shapes_scratch_and_rank_zero() {
    let a = call("product").input("a", [2, 3], &[1, 2, 3, 4, 5, 6]);
    let outcome = a.clone().input("b", [3, 1], &[1, 1, 2]).run().unwrap();
    assert_eq!(
        (outcome.get::<i32>("c"), outcome.shape("c")),
        (vec![9, 21], vec![2, 1])
    );
    assert_eq!(outcome.get::<i32>("sum"), [30]);
    let error = a
        .input("b", [2, 1], &[1, 1])
        .run()
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("axis 0 is `k`, which is 3, but its size is 2"),
        "{error}"
    );
}

#[test]
fn batches() {
    let a = call("product").batch_size(2).input("a", [1, 2], &[1, 2]);
    let call = a.batched_input("b", [2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]);
    let outcome = call.run().unwrap();
    assert_eq!(outcome.get::<i32>("c"), [7, 10, 19, 22]);
    assert_eq!(
        (outcome.get::<i32>("sum"), outcome.shape("c")),
        (vec![17, 41], vec![2, 1, 2])
    );
}

#[test]
fn batches_of_in_outs() {
    for (size, alias) in [(0, true), (1, false), (3, true), (3, false)] {
        let y: Vec<f32> = (0..2 * size).map(|i| i as f32).collect();
        let expected: Vec<f32> = y
            .iter()
            .enumerate()
            .map(|(i, y)| y + (1 + i % 2) as f32)
            .collect();
        let call = call("axpy")
            .alias_in_outs(alias)
            .batch_size(size)
            .value("a", 1.0_f32);
        let call = call
            .input("x", [2], &[1.0_f32, 2.0])
            .batched_input("y", [2], &y);
        assert_eq!(call.run().unwrap().get::<f32>("y"), expected);
    }
}

/// What counts its uses, and is counted.
struct Counter(Box<AtomicU32>);

static DROPPED: AtomicU32 = AtomicU32::new(0);

impl Counter {
    fn new(start: u32) -> Result<Counter> {
        match start {
            7 => Err(Error::not_found("no 7 here")),
            13 => panic!("13 is bad luck"),
            _ => Ok(Counter(Box::new(AtomicU32::new(start)))),
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
        assert!(self.0.load(Ordering::Relaxed) < 100, "100 does not go");
    }
}

#[jax_callable(state = Counter::new(start), has_side_effect)]
fn count(
    start: u32,
    counter: &State<Counter>,
    #[dims(n)] x: cpu::Array<u8, 1>,
    #[dims(n)] mut out: cpu::ArrayMut<u32, 1>,
) {
    let _ = x;
    out.fill(counter.0.fetch_add(1, Ordering::Relaxed));
}

#[test]
fn state() {
    let run = |start: u32| {
        let call = call("count").value("start", start).batch_size(3);
        let outcome = call.batched_input("x", [1], &[0_u8; 3]).run()?;
        Ok::<_, Error>(outcome.get::<u32>("out"))
    };
    assert_eq!(run(5).unwrap(), [5, 6, 7]);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 1);
    // Its drop panics.
    assert_eq!(run(200).unwrap(), [200, 201, 202]);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 2);
    let error = run(7).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert!(error.to_string().ends_with("no 7 here"), "{error}");
    let error = run(13).unwrap_err().to_string();
    assert!(error.contains("panicked: 13 is bad luck"), "{error}");
    assert_eq!(DROPPED.load(Ordering::Relaxed), 2);
}

/// Fails in a way of the caller's choice.
#[jax_callable]
fn fail(how: &str, x: cpu::Array<f32, 1>, mut out: cpu::ArrayMut<f32, 1>) -> Result<()> {
    out.copy_from_slice(&x);
    match how {
        "error" => Err(Error::out_of_range(format!("{} is too many", x.len()))),
        "foreign" => Err("no number".parse::<i32>().unwrap_err())?,
        "panic" => panic!("{} is too many", x.len()),
        "index" => {
            out[[x.len()]] = 0.0;
            Ok(())
        }
        "value" => std::panic::panic_any(5),
        _ => Ok(()),
    }
}

#[test]
fn errors_and_panics() {
    for (how, code, text) in [
        ("error", Code::OutOfRange, "calls.fail: 2 is too many"),
        (
            "foreign",
            Code::Unknown,
            "calls.fail: invalid digit found in string",
        ),
        (
            "panic",
            Code::Internal,
            "calls.fail: panicked: 2 is too many",
        ),
        ("index", Code::Internal, "calls.fail: panicked: "),
        (
            "value",
            Code::Internal,
            "calls.fail: panicked: with a value that is not text",
        ),
    ] {
        let call = call("fail")
            .value("how", how)
            .input("x", [2], &[1.0_f32, 2.0]);
        let error = call.run().err().unwrap();
        assert!(error.to_string().starts_with(text), "{error}");
        assert_eq!(error.code(), code, "{how}");
    }
}

/// out <- x x, in parallel.
#[jax_callable]
fn squares(cx: &cpu::Context, x: cpu::Array<u32, 1>, mut out: cpu::ArrayMut<u32, 1>) {
    cx.par_chunks_mut(&mut out, 2, |start, chunk| {
        for (out, x) in chunk.iter_mut().zip(&x[start..]) {
            assert!(*x < 100, "{x} is too large");
            *out = x * x;
        }
    });
}

#[test]
fn threads() {
    for num_threads in [1, 3] {
        let run = |x: &[u32; 5]| {
            call("squares")
                .num_threads(num_threads)
                .input("x", [5], x)
                .run()
        };
        assert_eq!(
            run(&[1, 2, 3, 4, 5]).unwrap().get::<u32>("out"),
            [1, 4, 9, 16, 25]
        );
        let error = run(&[1, 2, 3, 400, 5]).err().unwrap().to_string();
        assert!(error.contains("panicked: 400 is too large"), "{error}");
    }
}

/// Each number plus k.
#[jax_callable(batch_dims = n)]
fn shift(k: i16, #[dims(n)] x: cpu::Array<i16, 1>, #[dims(n)] mut out: cpu::ArrayMut<i16, 1>) {
    out.iter_mut()
        .zip(x.iter())
        .for_each(|(out, x)| *out = x + k);
}

#[test]
fn promises() {
    let call = call("shift")
        .value("k", 1_i16)
        .input("x", [3], &[1_i16, 2, 3]);
    call.check_batch_dims().unwrap();
}

/// What its caller wants.
#[jax_callable]
fn ones(x: cpu::Array<u8, 0>, mut out: cpu::ArrayMut<u8, 2>) {
    out.fill(x[[]]);
}

#[test]
fn chosen_shapes() {
    let call = call("ones")
        .input("x", [], &[3_u8])
        .output_dims("out", [2, 2]);
    assert_eq!(call.run().unwrap().get::<u8>("out"), [3; 4]);
}

macro_rules! many {
    ($($name:ident { $($number:ident)* } { $($input:ident)* })*) => {
        /// The names of the numbers and of the inputs, in the order of the signatures.
        const MANY: &[(&str, &[&str], &[&str])] =
            &[$((stringify!($name), &[$(stringify!($number)),*], &[$(stringify!($input)),*])),*];
        $(
            /// A sum in which each parameter has another weight.
            #[jax_callable]
            #[expect(clippy::too_many_arguments, reason = "as many as there can be")]
            fn $name(
                $($number: i64,)*
                $($input: cpu::Array<i64, 1>,)*
                mut out: cpu::ArrayMut<i64, 1>,
            ) {
                for i in 0..out.len() {
                    out[[i]] = weighted([$($number,)* $($input[[i]],)*]);
                }
            }
        )*
    };
}

many! {
    // As many arrays as the short cut looks at, and numbers whose names come before our own
    // attributes and after them.
    many_numbers
        {
            p27 p26 p25 p24 p23 p22 p21 p20 p19 p18 p17 p16 p15 p14 p13 p12 p11 p10 p09 p08 p07
            p06 p05 p04 p03 p02 p01 p00 b00 b01 b02 b03 b04 b05 b06 b07 b08 b09 b10 b11 b12 b13
            b14 b15 b16 b17 b18 b19 b20 b21 b22 b23 b24 b25 b26 b27
        }
        { x0 x1 x2 x3 x4 x5 x6 }
    many_arrays
        {}
        {
            x0 x1 x2 x3 x4 x5 x6 x7 x8 x9 x10 x11 x12 x13 x14 x15 x16 x17 x18 x19 x20 x21 x22
            x23 x24 x25 x26 x27 x28 x29 x30 x31 x32 x33 x34 x35 x36 x37 x38 x39 x40 x41 x42 x43
            x44 x45 x46 x47 x48 x49 x50 x51 x52 x53 x54 x55 x56 x57 x58 x59 x60 x61 x62
        }
}

fn weighted(values: impl IntoIterator<Item = i64>) -> i64 {
    (1..)
        .zip(values)
        .map(|(weight, value)| weight * value)
        .sum()
}

#[test]
#[cfg_attr(miri, ignore = "it takes as long there as all others")]
fn as_many_parameters_as_there_can_be() {
    let value = |i: usize| (7919 * i * i % 1009) as i64;
    for &(name, numbers, inputs) in MANY {
        assert_eq!(numbers.len() + inputs.len() + 1, 64);
        let first = numbers.len();
        let with_numbers = |call| {
            let numbers = numbers.iter().enumerate();
            numbers.fold(call, |call: Call, (i, name)| call.value(name, value(i)))
        };
        let expected =
            |at: i64| weighted((0..63).map(|i| value(i) + if i < first { 0 } else { at }));
        let mut one = with_numbers(call(name));
        // Each second input has the batch.
        let mut batch = with_numbers(call(name).batch_size(2));
        for (i, input) in inputs.iter().enumerate() {
            let value = value(first + i);
            one = one.input(input, [2], &[value, value + 1]);
            batch = match i % 2 {
                0 => batch.input(input, [1], &[value]),
                _ => batch.batched_input(input, [1], &[value, value + 1]),
            };
        }
        assert_eq!(
            one.run().unwrap().get::<i64>("out"),
            [expected(0), expected(1)]
        );
        let odd = (first..63).filter(|i| (i - first) % 2 == 1);
        let more = odd.map(|i| i as i64 + 1).sum::<i64>();
        let got = batch.run().unwrap().get::<i64>("out");
        assert_eq!(got, [expected(0), expected(0) + more], "{name}");
    }
}
