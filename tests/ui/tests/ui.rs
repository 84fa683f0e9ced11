//! Compiles the files of `pass` and `fail`; the latter must give the texts beside them.
//!
//! The texts are those of the toolchain in `rust-toolchain.toml`. After a change that
//! is meant, `TRYBUILD=overwrite cargo test -p ui-tests` writes them anew: read the
//! difference as a user would.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("pass/*.rs");
    cases.compile_fail("fail/*.rs");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Words that begin with `JC` and four digits.
fn codes(text: &str) -> Vec<String> {
    let starts = text.match_indices("JC").map(|(at, _)| &text[at..]);
    starts
        .filter_map(|rest| rest.get(..6))
        .filter(|code| code[2..].bytes().all(|b| b.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

/// The codes of the table of diagnostics.
fn table() -> BTreeSet<String> {
    let codes: BTreeSet<_> = codes(&read("macros/src/diag.rs")).into_iter().collect();
    assert!(codes.len() > 60, "{codes:?}");
    codes
}

fn expected_texts() -> Vec<(String, String)> {
    let folders = ["tests/ui/fail", "tests/ui/cpu/fail"].map(|folder| root().join(folder));
    let entries = folders.map(|folder| fs::read_dir(folder).expect("a folder of failing cases"));
    let entries = entries.into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let texts = paths.filter(|path| path.extension().is_some_and(|ext| ext == "stderr"));
    texts
        .map(|path| (path.display().to_string(), read(&path)))
        .collect()
}

/// The errors of a text, each with what belongs to it.
fn errors(text: &str) -> usize {
    text.lines()
        .filter(|line| line.starts_with("error"))
        .count()
}

#[test]
fn every_diagnostic_has_a_case_of_its_own() {
    let alone: BTreeSet<_> = expected_texts()
        .iter()
        .filter(|(_, text)| errors(text) == 1)
        .flat_map(|(_, text)| codes(text))
        .collect();
    let table = table();
    let missing: Vec<_> = table.difference(&alone).collect();
    assert!(
        missing.is_empty(),
        "no case in `fail` shows {missing:?} alone"
    );
    let unknown: Vec<_> = alone.difference(&table).collect();
    assert!(unknown.is_empty(), "the table lacks {unknown:?}");
}

#[test]
fn every_diagnostic_is_explained_once() {
    let page = read("docs/errors.md");
    let rows = page.lines().filter(|line| line.starts_with("| JC"));
    let explained: Vec<_> = rows.flat_map(codes).collect();
    let table: Vec<_> = table().into_iter().collect();
    assert_eq!(
        explained, table,
        "docs/errors.md and macros/src/diag.rs differ"
    );
}

/// Texts on what is no part of our interface, or is not meant to be read.
const INTERNALS: &[&str] = &[
    "__private",
    "Definition",
    "Registration",
    "CALLABLE",
    "::Def",
    "jax_callable_",
    "jax_callable::param::",
    "jax_callable::state::",
    "jax_callable::ffi::",
];

#[test]
fn texts_name_no_internals() {
    for (path, text) in expected_texts() {
        for internal in INTERNALS {
            let said = text.lines().find(|line| line.contains(internal));
            assert!(said.is_none(), "{path} says `{internal}`: {said:?}");
        }
    }
}

#[test]
fn aborting_panics_are_refused() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["rustc", "--quiet", "--package", "jax-callable", "--lib"]);
    cargo.args(["--profile", "check", "--", "-C", "panic=abort"]);
    let output = cargo.current_dir(root()).output().expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        text.contains("Remove `panic = \"abort\"` from the profile."),
        "{text}"
    );
}
