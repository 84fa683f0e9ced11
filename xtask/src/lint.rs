//! `cargo xtask lint`: formatting and static checks.

use crate::cmd::{self, Result};
use crate::python::Interpreter;
use crate::repo::Repo;
use crate::setup::SetUp;
use crate::steps::{Outcome, Step};
use crate::venv::{Contents, Venv};

/// Pinned, so that a new release of a linter breaks no build.
const TOOLS: Contents = Contents {
    packages: &["mypy==2.4.1", "ruff==0.17.6"],
    files: &[],
    editable: None,
};

/// The fast ones first; `quick` leaves out what rarely fails alone.
pub(crate) fn steps<'a>(repo: &'a Repo, python: &'a Interpreter, quick: bool) -> Vec<Step<'a>> {
    let cargo = |name, about, arguments| {
        Step::new(name, about, move || {
            cmd::run(&mut repo.cargo(arguments))?;
            Ok(Outcome::passed())
        })
    };
    let mut steps = vec![
        cargo("lint/fmt", "Rust formatting", "fmt --all --check"),
        Step::new("lint/ruff-format", "Python formatting", || {
            ruff(repo, python, &["format", "--check", "."])
        }),
        Step::new("lint/ruff", "Python lints", || {
            ruff(repo, python, &["check", "."])
        }),
        Step::new(
            "lint/mypy",
            "Python types, strictly, against the installed JAX",
            || mypy(repo, python),
        ),
        cargo(
            "lint/clippy",
            "Rust lints",
            "clippy --workspace --all-targets -- -D warnings",
        ),
    ];
    if !quick {
        steps.push(cargo(
            "lint/cuda-13000",
            "Rust lints of the runtime with CUDA 13, which excludes CUDA 12",
            "clippy -p jax-callable --features cuda-13000,cublas -- -D warnings",
        ));
        steps.push(Step::new("lint/doc", "rustdoc without warnings", || {
            let mut doc = repo.cargo("doc --workspace --no-deps");
            cmd::run(doc.env("RUSTDOCFLAGS", "-Dwarnings"))?;
            Ok(Outcome::passed())
        }));
        steps.push(Step::new(
            "lint/deny",
            "licences, advisories, sources: cargo-deny, where it is installed",
            || deny(repo),
        ));
    }
    steps
}

fn tools(repo: &Repo, python: &Interpreter) -> Result<Venv> {
    Venv::ensure(repo, "tools", python, &TOOLS)
}

fn ruff(repo: &Repo, python: &Interpreter, arguments: &[&str]) -> Result<Outcome> {
    let mut ruff = tools(repo, python)?.python();
    ruff.env("RUFF_CACHE_DIR", repo.target.join("cache/ruff"));
    cmd::run(ruff.args(["-m", "ruff"]).args(arguments))?;
    Ok(Outcome::passed())
}

fn mypy(repo: &Repo, python: &Interpreter) -> Result<Outcome> {
    let (jax, _) = SetUp::default(python).make(repo)?;
    let mut mypy = tools(repo, python)?.python();
    // Where its settings are, in pyproject.toml.
    mypy.current_dir(repo.root.join("python"));
    mypy.args(["-m", "mypy", "--strict", "jax_callable"]);
    mypy.arg("--python-executable").arg(jax.interpreter());
    mypy.arg("--cache-dir").arg(repo.target.join("cache/mypy"));
    cmd::run(&mut mypy)?;
    Ok(Outcome::passed())
}

fn deny(repo: &Repo) -> Result<Outcome> {
    if !cmd::succeeds(&mut repo.cargo("deny --version")) {
        let why = "cargo-deny is not installed (cargo install --locked cargo-deny)";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    cmd::run(&mut repo.cargo("deny check"))?;
    Ok(Outcome::passed())
}
