//! `cargo xtask`: the repository's own commands.

mod cmd;
mod demo;
mod gpu_bundle;
mod lint;
mod long;
mod python;
mod repo;
mod setup;
mod steps;
mod test;
mod venv;

use std::io::Write as _;
use std::process::ExitCode;

use cmd::Result;
use python::Interpreters;
use repo::Repo;
use test::Extent;

const HELP: &str = "\
The repository's own commands.

Usage: cargo xtask COMMAND

  demo                          build examples/quickstart, list its targets, run it in JAX
  test [--quick | --long] [STEP...] [-- ARGS...]
                                everything that CI runs, or the named steps and what they need;
                                --quick leaves out rustdoc, the other JAX set-ups and the demo;
                                --long runs tests in their long forms, and then miri, loom, sanitize
                                and fuzz: hours; ARGS go to pytest
  lint [STEP...]                formatting, clippy, rustdoc, ruff, mypy, cargo-deny
  miri, loom, sanitize          the code for threads and pointers under Miri, loom, ThreadSanitizer
                                and AddressSanitizer; all but loom need a nightly toolchain
  fuzz [TARGET] [SECONDS]       libFuzzer on what comes from the host: attributes, expressions, frames
  gpu-bundle                    target/gpu-bundle: library, package, tests and run.sh for a machine
                                with a GPU, JAX for CUDA and pytest, and nothing else
  bench [ARGS...]               build in release and run benches/run.py with ARGS
  help                          this text

A STEP is a name from the printed plan or a part of one: `pytest/oldest`, `pytest`, `clippy`.
Examples: cargo xtask test rust
          cargo xtask test pytest/default -- -k saxpy

Needs cargo and Python 3.10 or newer with venv. The first `python3` on PATH that will do is used;
XTASK_PYTHON=/path/to/python3 names another. Virtual environments live in target/venvs and are
made anew when what they hold changes; delete that directory to fetch newer releases.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(format!("no command given\n\n{HELP}").into());
    };
    if matches!(command.as_str(), "help" | "--help" | "-h") || asks_for_help(command, rest) {
        return Ok(std::io::stdout().write_all(HELP.as_bytes())?);
    }
    match command.as_str() {
        "demo" => {
            TestArguments::parse(rest)?.none_for("demo")?;
            demo::demo(&Repo::locate()?, &python::default()?)
        }
        "test" => {
            let arguments = TestArguments::parse(rest)?;
            let (repo, pythons) = (Repo::locate()?, Interpreters::find()?);
            let steps = test::steps(&repo, &pythons, arguments.extent, &arguments.pytest);
            steps::run(steps::choose(steps, &arguments.steps)?, |name| {
                format!("test {name}")
            })
        }
        "lint" => {
            let names = TestArguments::parse(rest)?.only_steps()?;
            let (repo, python) = (Repo::locate()?, python::default()?);
            let steps = lint::steps(&repo, &python, false);
            steps::run(steps::choose(steps, &names)?, |name| format!("lint {name}"))
        }
        group @ ("miri" | "loom" | "sanitize") => {
            TestArguments::parse(rest)?.none_for(group)?;
            let repo = Repo::locate()?;
            let steps = steps::choose(long::steps(&repo), &[group.to_owned()])?;
            steps::run(steps, |_| group.to_owned())
        }
        "fuzz" => long::fuzz(&Repo::locate()?, rest),
        "gpu-bundle" => {
            TestArguments::parse(rest)?.none_for("gpu-bundle")?;
            gpu_bundle::gpu_bundle(&Repo::locate()?)
        }
        "bench" => demo::bench(&Repo::locate()?, &python::default()?, rest),
        other => Err(format!("no command `{other}`\n\n{HELP}").into()),
    }
}

/// `bench` hands its arguments on, `--help` included.
fn asks_for_help(command: &str, rest: &[String]) -> bool {
    command != "bench"
        && rest
            .iter()
            .take_while(|argument| *argument != "--")
            .any(|argument| matches!(argument.as_str(), "--help" | "-h"))
}

#[derive(Debug, Default, PartialEq)]
struct TestArguments {
    extent: Extent,
    steps: Vec<String>,
    pytest: Vec<String>,
}

impl TestArguments {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--" => {
                    parsed.pytest = arguments.cloned().collect();
                    break;
                }
                "--quick" => parsed.extent = Extent::Quick,
                "--long" => parsed.extent = Extent::Long,
                option if option.starts_with('-') => {
                    return Err(format!(
                        "no option `{option}`: `cargo xtask help` lists the options; \
                         what is for pytest goes after `--`"
                    )
                    .into());
                }
                step => parsed.steps.push(step.to_owned()),
            }
        }
        Ok(parsed)
    }

    fn only_steps(self) -> Result<Vec<String>> {
        if self.extent != Extent::Usual || !self.pytest.is_empty() {
            return Err("`cargo xtask lint` takes names of steps only".into());
        }
        Ok(self.steps)
    }

    fn none_for(self, command: &str) -> Result {
        if self == Self::default() {
            return Ok(());
        }
        Err(format!("`cargo xtask {command}` takes no arguments").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<TestArguments> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        TestArguments::parse(&words)
    }

    #[test]
    fn options_steps_and_pytest_arguments_are_told_apart() {
        let parsed = parse("rust --quick pytest/oldest -- -k saxpy --quick").unwrap();
        assert_eq!(parsed.extent, Extent::Quick);
        assert_eq!(parsed.steps, ["rust", "pytest/oldest"]);
        assert_eq!(parsed.pytest, ["-k", "saxpy", "--quick"]);
    }

    #[test]
    fn an_unknown_option_is_named() {
        let error = parse("--fast").unwrap_err().to_string();
        assert!(error.contains("`--fast`"), "{error}");
    }

    #[test]
    fn lint_refuses_what_only_test_takes() {
        assert_eq!(parse("fmt").unwrap().only_steps().unwrap(), ["fmt"]);
        assert!(parse("fmt --quick").unwrap().only_steps().is_err());
        assert!(parse("-- -x").unwrap().only_steps().is_err());
    }

    #[test]
    fn unknown_commands_and_stray_arguments_are_errors() {
        for line in ["tset", "demo now", ""] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert!(dispatch(&words).is_err(), "{line:?}");
        }
    }
}
