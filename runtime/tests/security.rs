//! What a program from elsewhere reaches through a target: the claims of docs/security.md that are
//! about bodies.

use jax_callable::prelude::*;
use jax_callable::testing::{Call, Target};
use std::sync::atomic::{AtomicUsize, Ordering};

fn call(name: &str) -> Call {
    Target::find(name).unwrap().call()
}

/// y[i] <- x[index[i]].
#[jax_callable]
fn take_at(
    #[dims(n)] x: cpu::Array<f32, 1>,
    #[dims(m)] index: cpu::Array<i32, 1>,
    #[dims(m)] mut y: cpu::ArrayMut<f32, 1>,
) {
    for (y, &index) in y.iter_mut().zip(index.iter()) {
        *y = x[index as usize];
    }
}

#[test]
fn indices_in_arrays_may_be_anything() {
    let at = |index: i32| {
        let call = call("take_at").input("x", [2], &[1.0_f32, 2.0]);
        call.input("index", [1], &[index]).run()
    };
    assert_eq!(at(1).unwrap().get::<f32>("y"), [2.0]);
    for index in [2, -1, i32::MIN, i32::MAX] {
        let error = at(index).unwrap_err();
        assert_eq!(error.code(), Code::Internal);
        let text = error.to_string();
        assert!(
            text.contains("take_at: panicked: index out of bounds"),
            "{text}"
        );
    }
}

static BUILT: AtomicUsize = AtomicUsize::new(0);

/// Takes its size from the program.
struct Table(Vec<u8>);

impl Table {
    fn unchecked(size: u64) -> Table {
        let table = Table(vec![0; size as usize]);
        BUILT.fetch_add(1, Ordering::Relaxed);
        table
    }

    fn checked(size: u64) -> Result<Table> {
        let mut table = Vec::new();
        table
            .try_reserve_exact(size as usize)
            .map_err(Error::resource_exhausted)?;
        table.resize(size as usize, 0);
        Ok(Table(table))
    }
}

#[jax_callable(state = Table::unchecked(size))]
fn unchecked(size: u64, table: &State<Table>, #[dims()] mut y: cpu::ArrayMut<u64, 0>) {
    y[[]] = table.0.len() as u64;
    let _ = size;
}

#[jax_callable(state = Table::checked(size))]
fn checked(size: u64, table: &State<Table>, #[dims()] mut y: cpu::ArrayMut<u64, 0>) {
    y[[]] = table.0.len() as u64;
    let _ = size;
}

/// `vec![0; n]` of more than there are addresses panics; of more than there is memory it would end
/// the process, which `try_reserve` does not.
#[test]
fn sizes_of_state_are_the_program_s() {
    let run = |name: &str, size: u64| call(name).value("size", size).run();
    let error = run("unchecked", u64::MAX).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("unchecked: panicked: capacity overflow"),
        "{error}"
    );
    assert_eq!(BUILT.load(Ordering::Relaxed), 0);
    for size in [u64::MAX, 1 << 62] {
        let error = run("checked", size).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
        assert!(
            error
                .to_string()
                .contains("checked: cannot build its state: "),
            "{error}"
        );
    }
    assert_eq!(run("checked", 3).unwrap().get::<u64>("y"), [3]);
}

/// The length of a text, of which a call site has a copy.
#[jax_callable]
fn length(text: &str, #[dims()] mut y: cpu::ArrayMut<u64, 0>) {
    y[[]] = text.len() as u64;
}

#[test]
fn texts_are_as_long_as_the_program_says() {
    for text in ["", "a\0b", "naïve"] {
        let outcome = call("length").value("text", text).run().unwrap();
        assert_eq!(outcome.get::<u64>("y"), [text.len() as u64]);
    }
    let long = "x".repeat(1 << 22);
    let outcome = call("length").value("text", &*long).run().unwrap();
    assert_eq!(outcome.get::<u64>("y"), [1 << 22]);
}

/// Without unsafe code a body reaches only its arrays; what it was not given, it cannot name.
#[jax_callable]
fn first(x: cpu::Array<u8, 1>, #[dims()] mut y: cpu::ArrayMut<u8, 0>) {
    y[[]] = x[0];
}

#[test]
fn empty_arrays_have_no_first_element() {
    let error = call("first").input("x", [0], &[0_u8; 0]).run().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("first: panicked: index out of bounds"),
        "{error}"
    );
    assert_eq!(
        call("first")
            .input("x", [1], &[7_u8])
            .run()
            .unwrap()
            .get::<u8>("y"),
        [7]
    );
}
