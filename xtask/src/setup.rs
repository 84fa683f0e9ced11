//! The JAX set-ups: an interpreter, a JAX, the package and what tests and example import.

use crate::cmd::Result;
use crate::python::Interpreter;
use crate::repo::Repo;
use crate::venv::{Contents, Venv};

/// Packages whose versions a report should name.
const REPORTED: [&str; 3] = ["jax", "jaxlib", "numpy"];

pub(crate) struct SetUp {
    name: &'static str,
    interpreter: Interpreter,
    jax: &'static [&'static str],
}

impl SetUp {
    /// The newest JAX that pip finds for the default interpreter.
    pub(crate) fn default(interpreter: &Interpreter) -> Self {
        Self {
            name: "default",
            interpreter: interpreter.clone(),
            jax: &["jax"],
        }
    }

    /// The oldest JAX that the package supports.
    pub(crate) fn oldest(interpreter: &Interpreter) -> Self {
        Self {
            name: "oldest",
            interpreter: interpreter.clone(),
            jax: &["jax==0.6.2", "jaxlib==0.6.2"],
        }
    }

    /// The newest JAX on an interpreter newer than the default one, which may have a newer JAX.
    pub(crate) fn newest(interpreter: &Interpreter) -> Self {
        Self {
            name: "newest",
            ..Self::default(interpreter)
        }
    }

    /// The set-up's environment and the versions in it, as a report names them.
    pub(crate) fn make(&self, repo: &Repo) -> Result<(Venv, String)> {
        let contents = Contents {
            packages: self.jax,
            files: &[
                "tests/python/requirements.txt",
                "examples/quickstart/requirements.txt",
            ],
            editable: Some("python"),
        };
        let venv = Venv::ensure(repo, self.name, &self.interpreter, &contents)?;
        let versions = venv.versions(&REPORTED)?;
        eprintln!("{versions}");
        Ok((venv, versions))
    }

    pub(crate) fn about(&self) -> String {
        let jax = match self.jax {
            ["jax"] => "the newest JAX for it",
            pinned => pinned[0],
        };
        format!("on Python {}, {jax}", self.interpreter.version)
    }
}
