//! Checks that need more time than CI has, or another toolchain: Miri, loom, sanitizers, fuzzing.

use std::process::Command;

use crate::cmd::{self, Result};
use crate::repo::Repo;
use crate::steps::{Outcome, Step};

/// What is compiled for, by whom the standard library is compiled too.
const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn steps(repo: &Repo) -> Vec<Step<'_>> {
    vec![
        Step::new(
            "miri/stacked-borrows",
            "calls of each kind and random frames under Miri, by its first rules for pointers",
            || miri(repo, ""),
        ),
        Step::new("miri/tree-borrows", "the same by its second rules", || {
            miri(repo, "-Zmiri-tree-borrows")
        }),
        Step::new(
            "loom",
            "protocols of locks and atomics, in the orders in which threads can meet",
            || loom(repo),
        ),
        Step::new(
            "sanitize/thread",
            "threads under ThreadSanitizer, with a standard library built for it",
            || sanitize(repo, "thread"),
        ),
        Step::new(
            "sanitize/address",
            "the same under AddressSanitizer",
            || sanitize(repo, "address"),
        ),
        Step::new(
            "fuzz",
            "each fuzzer for a minute, by libFuzzer under AddressSanitizer",
            || match has_fuzzing() {
                true => fuzz(repo, &[]).map(|()| Outcome::passed()),
                false => Ok(Outcome::Skipped(NO_FUZZING.into())),
            },
        ),
    ]
}

const CALLS: &str = "--test calls";
/// The other unit tests take Miri too long, or have pointers into themselves.
const FRAMES: &str = "--lib fuzzing::";

fn miri(repo: &Repo, flags: &str) -> Result<Outcome> {
    if !cmd::succeeds(Command::new("cargo").args(["+nightly", "miri", "--version"])) {
        return Ok(missing("no nightly toolchain with Miri", "miri rust-src"));
    }
    for tests in [CALLS, FRAMES] {
        let mut miri = nightly(repo, "miri");
        miri.args(["miri", "test", "-p", "jax-callable"]);
        // Tests look at the clock, and a backtrace takes Miri longer than a test.
        miri.env("RUST_BACKTRACE", "0");
        miri.env(
            "MIRIFLAGS",
            format!("-Zmiri-disable-isolation {flags}").trim(),
        );
        cmd::run(miri.args(tests.split_whitespace()))?;
    }
    Ok(Outcome::passed())
}

fn loom(repo: &Repo) -> Result<Outcome> {
    let mut loom = repo.cargo("test --release -p jax-callable --lib loom_");
    loom.env("RUSTFLAGS", "--cfg loom");
    loom.env("CARGO_TARGET_DIR", repo.target.join("loom"));
    cmd::run(&mut loom)?;
    Ok(Outcome::passed())
}

fn sanitize(repo: &Repo, sanitizer: &str) -> Result<Outcome> {
    let has_source = Command::new("rustc")
        .args(["+nightly", "--print", "sysroot"])
        .output()
        .is_ok_and(|output| {
            let sysroot = String::from_utf8_lossy(&output.stdout);
            std::path::Path::new(sysroot.trim())
                .join("lib/rustlib/src/rust/library")
                .exists()
        });
    if !has_source {
        return Ok(missing("no nightly toolchain with rust-src", "rust-src"));
    }
    let mut test = nightly(repo, sanitizer);
    // Not the tests against the stand-in: a library with a sanitizer cannot be opened later.
    test.args(["test", "-Zbuild-std", "--target", TARGET]);
    test.args(["-p", "jax-callable", "--lib", "--test", "calls"]);
    test.env("RUSTFLAGS", format!("-Zsanitizer={sanitizer}"));
    // Tests leak what they need for ever.
    test.env("ASAN_OPTIONS", "detect_leaks=0");
    cmd::run(&mut test)?;
    Ok(Outcome::passed())
}

/// The fuzzers in `tests/fuzz`.
const FUZZERS: [&str; 3] = ["attributes", "expressions", "frames"];

const NO_FUZZING: &str = "it needs a nightly toolchain and `cargo install --locked cargo-fuzz`";

fn has_fuzzing() -> bool {
    cmd::succeeds(Command::new("cargo").args(["+nightly", "fuzz", "--version"]))
}

/// `cargo xtask fuzz [TARGET] [SECONDS]`: all targets, or one.
pub(crate) fn fuzz(repo: &Repo, arguments: &[String]) -> Result {
    let (fuzzers, seconds) = fuzz_arguments(arguments)?;
    if !has_fuzzing() {
        return Err(NO_FUZZING.into());
    }
    for fuzzer in fuzzers {
        let mut fuzz = nightly(repo, "fuzz");
        fuzz.args(["fuzz", "run", "--fuzz-dir", "tests/fuzz", fuzzer, "--"]);
        cmd::run(fuzz.arg(format!("-max_total_time={seconds}")))?;
    }
    Ok(())
}

fn fuzz_arguments(arguments: &[String]) -> Result<(Vec<&'static str>, u32)> {
    let (mut fuzzers, mut seconds) = (Vec::new(), 60);
    for argument in arguments {
        let fuzzer = FUZZERS.into_iter().find(|fuzzer| fuzzer == argument);
        match (fuzzer, argument.parse()) {
            (Some(fuzzer), _) => fuzzers.push(fuzzer),
            (None, Ok(number)) => seconds = number,
            (None, Err(_)) => {
                let known = FUZZERS.join(", ");
                return Err(format!("no fuzzer `{argument}`; there are: {known}").into());
            }
        }
    }
    if fuzzers.is_empty() {
        fuzzers.extend(FUZZERS);
    }
    Ok((fuzzers, seconds))
}

/// The nightly toolchain's cargo, with a folder of its own in the target directory.
fn nightly(repo: &Repo, folder: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&repo.root).arg("+nightly");
    cargo.env("CARGO_TARGET_DIR", repo.target.join(folder));
    cargo
}

fn missing(what: &str, components: &str) -> Outcome {
    Outcome::Skipped(format!(
        "{what} (rustup toolchain install nightly --component {})",
        components.replace(' ', ",")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Result<(Vec<&'static str>, u32)> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        fuzz_arguments(&words)
    }

    #[test]
    fn a_fuzzer_and_its_time() {
        assert_eq!(arguments("").unwrap(), (FUZZERS.to_vec(), 60));
        assert_eq!(arguments("frames 300").unwrap(), (vec!["frames"], 300));
        assert_eq!(arguments("5").unwrap(), (FUZZERS.to_vec(), 5));
        let error = arguments("farmes").unwrap_err().to_string();
        assert!(
            error.contains("`farmes`") && error.contains("frames"),
            "{error}"
        );
    }
}
