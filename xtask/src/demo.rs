//! `cargo xtask demo` and `cargo xtask bench`: one program each, in the default set-up.

use crate::cmd::{self, Result};
use crate::python::Interpreter;
use crate::repo::Repo;
use crate::setup::SetUp;

/// What a newcomer sees first: only the library's and the example's words go to stdout.
pub(crate) fn demo(repo: &Repo, python: &Interpreter) -> Result {
    let (venv, _) = SetUp::default(python).make(repo)?;
    repo.build(&["quickstart"])?;
    let library = repo.library("quickstart");
    let library = repo.short(&library).to_string();
    let show = |words: &[&str]| cmd::run(venv.python_on_cpu().args(words).arg(&library));
    show(&["-m", "jax_callable", "list"])?;
    show(&["examples/quickstart/demo.py"])
}

pub(crate) fn bench(repo: &Repo, python: &Interpreter, arguments: &[String]) -> Result {
    let (venv, _) = SetUp::default(python).make(repo)?;
    repo.build(&["bench-ops"])?;
    let mut bench = venv.python_on_cpu();
    bench.env("JAX_CALLABLE_BENCH_OPS", repo.library("bench-ops"));
    bench.arg("benches/run.py");
    cmd::run(bench.args(arguments))
}
