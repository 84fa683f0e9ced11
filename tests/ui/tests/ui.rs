//! Compiles the files of `pass` and `fail`; the latter must give the texts beside them.
//!
//! The texts are those of the toolchain in `rust-toolchain.toml`. After a change that
//! is meant, `TRYBUILD=overwrite cargo test -p ui-tests` writes them anew: read the
//! difference as a user would.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("pass/*.rs");
    cases.compile_fail("fail/*.rs");
}

/// Words that begin with `JC` and four digits.
fn codes(text: &str) -> BTreeSet<String> {
    let starts = text.match_indices("JC").map(|(at, _)| &text[at..]);
    starts
        .filter_map(|rest| rest.get(..6))
        .filter(|code| code[2..].bytes().all(|b| b.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

fn expected_texts() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fail");
    let entries = fs::read_dir(folder).expect("the folder of failing cases");
    entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "stderr")
        })
        .map(|path| {
            let text = fs::read_to_string(&path).expect("an expected text");
            (path.display().to_string(), text)
        })
        .collect()
}

#[test]
fn every_diagnostic_has_a_case() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../macros/src/diag.rs");
    let known = codes(&fs::read_to_string(table).expect("the table of diagnostics"));
    let seen: BTreeSet<_> = expected_texts()
        .iter()
        .flat_map(|(_, text)| codes(text))
        .collect();
    let missing: Vec<_> = known.difference(&seen).collect();
    assert!(missing.is_empty(), "no case in `fail` shows {missing:?}");
}

#[test]
fn texts_name_no_internals() {
    for (path, text) in expected_texts() {
        let ours = |line: &&str| line.starts_with("error") || line.starts_with("       ");
        for line in text.lines().filter(ours) {
            for internal in [
                "__private",
                "FfiArg",
                "Definition",
                "CALLABLE",
                "jax_callable_",
            ] {
                assert!(!line.contains(internal), "{path} says `{internal}`: {line}");
            }
        }
    }
}
