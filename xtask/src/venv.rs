//! Virtual environments under target/venvs.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::cmd::{self, Result};
use crate::python::Interpreter;
use crate::repo::Repo;
use crate::steps::seconds;

/// What a virtual environment holds; paths are relative to the root.
pub(crate) struct Contents {
    /// Requirements as pip reads them: `jax==0.6.2`.
    pub(crate) packages: &'static [&'static str],
    /// Requirement files.
    pub(crate) files: &'static [&'static str],
    /// The directory of a project, installed so that edits are seen.
    pub(crate) editable: Option<&'static str>,
}

pub(crate) struct Venv {
    directory: PathBuf,
    root: PathBuf,
}

impl Venv {
    /// The environment `name` with `contents`: as it was left if its stamp still says so, else
    /// made anew.
    pub(crate) fn ensure(
        repo: &Repo,
        name: &str,
        interpreter: &Interpreter,
        contents: &Contents,
    ) -> Result<Self> {
        let venv = Self {
            directory: repo.target.join("venvs").join(name),
            root: repo.root.clone(),
        };
        let stamp = stamp(&repo.root, interpreter, contents)?;
        let stamp_file = venv.directory.join("xtask-stamp");
        if is_current(&stamp_file, &stamp) && venv.interpreter().exists() {
            return Ok(venv);
        }

        let directory = repo.short(&venv.directory);
        eprintln!(
            "making {directory} with Python {}: {} (pip downloads what it has not cached)",
            interpreter.version,
            contents.listed()
        );
        let start = Instant::now();
        venv.make(interpreter, contents)
            .map_err(|error| format!("making {directory} failed: {error}"))?;
        // Last, so that an interrupted installation is not taken for a whole one.
        fs::write(stamp_file, stamp)?;
        eprintln!("made {directory} in {}", seconds(start.elapsed()));
        Ok(venv)
    }

    fn make(&self, interpreter: &Interpreter, contents: &Contents) -> Result {
        if self.directory.exists() {
            fs::remove_dir_all(&self.directory)?;
        }
        let mut create = Command::new(&interpreter.path);
        create.args(["-m", "venv"]).arg(&self.directory);
        cmd::output(without_python_settings(&mut create))?;

        let mut install = self.python();
        install.args(["-m", "pip", "install", "--quiet", "--no-input"]);
        install.arg("--disable-pip-version-check");
        install.args(contents.packages);
        for file in contents.files {
            install.args(["-r", file]);
        }
        if let Some(project) = contents.editable {
            install.arg("-e").arg(self.root.join(project));
        }
        cmd::output(&mut install).map_err(|error| {
            format!(
                "{error}\npip's own words are above. If it found no matching release, this Python \
                 may be too new or too old for JAX: set XTASK_PYTHON to another one. If it could \
                 not connect, check the network and pip's settings (`pip config list`)."
            )
        })?;
        Ok(())
    }

    /// This environment's Python, in the repository's root.
    pub(crate) fn python(&self) -> Command {
        let mut python = Command::new(self.interpreter());
        python.current_dir(&self.root);
        without_python_settings(&mut python);
        python
    }

    /// The same, with JAX on the CPU whatever else it would find.
    pub(crate) fn python_on_cpu(&self) -> Command {
        let mut python = self.python();
        python.env("JAX_PLATFORMS", "cpu");
        python
    }

    pub(crate) fn interpreter(&self) -> PathBuf {
        self.directory.join("bin/python")
    }

    /// `Python 3.11.7, jax 0.10.2, numpy 2.3.5`, of `packages`.
    pub(crate) fn versions(&self, packages: &[&str]) -> Result<String> {
        let script = "import sys, platform, importlib.metadata as m\n\
             names = sys.argv[1:]\n\
             found = [f'{name} {m.version(name)}' for name in names]\n\
             print(', '.join([f'Python {platform.python_version()}', *found]))";
        let versions = cmd::output(self.python().args(["-c", script]).args(packages))?;
        Ok(versions.trim().to_owned())
    }
}

/// Settings meant for another interpreter would show through.
fn without_python_settings(command: &mut Command) -> &mut Command {
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME")
}

impl Contents {
    fn listed(&self) -> String {
        let files = self.files.iter().chain(&self.editable);
        let words: Vec<&str> = self.packages.iter().chain(files).copied().collect();
        words.join(", ")
    }
}

fn is_current(stamp_file: &Path, stamp: &str) -> bool {
    fs::read_to_string(stamp_file).is_ok_and(|written| written == stamp)
}

/// All that an environment depends on, as text: two equal ones make equal environments.
fn stamp(root: &Path, interpreter: &Interpreter, contents: &Contents) -> Result<String> {
    let mut stamp = format!("{}\n{}\n", interpreter.version, interpreter.path.display());
    for package in contents.packages {
        writeln!(stamp, "{package}")?;
    }
    let mut files: Vec<_> = contents.files.iter().map(PathBuf::from).collect();
    if let Some(project) = contents.editable {
        writeln!(stamp, "{}", root.join(project).display())?;
        files.push(Path::new(project).join("pyproject.toml"));
    }
    for file in files {
        let text = fs::read_to_string(root.join(&file))
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        writeln!(stamp, "{}:\n{text}", file.display())?;
    }
    Ok(stamp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::Version;

    /// A directory of its own for each test, gone at its end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let directory =
                std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
            fs::create_dir_all(directory.join("python")).unwrap();
            fs::write(directory.join("requirements.txt"), "scipy\n").unwrap();
            fs::write(directory.join("python/pyproject.toml"), "[project]\n").unwrap();
            Self(directory)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn interpreter(patch: u32) -> Interpreter {
        Interpreter {
            path: "/usr/bin/python3".into(),
            version: Version(3, 11, patch),
        }
    }

    fn contents(packages: &'static [&'static str]) -> Contents {
        Contents {
            packages,
            files: &["requirements.txt"],
            editable: Some("python"),
        }
    }

    #[test]
    fn the_stamp_changes_with_everything_it_depends_on() {
        let scratch = Scratch::new("stamp");
        let of = |patch, packages| stamp(&scratch.0, &interpreter(patch), &contents(packages));
        let first = of(7, &["jax"]).unwrap();
        assert_eq!(first, of(7, &["jax"]).unwrap());
        assert_ne!(first, of(8, &["jax"]).unwrap());
        assert_ne!(first, of(7, &["jax==0.6.2"]).unwrap());

        fs::write(scratch.0.join("requirements.txt"), "scipy<2\n").unwrap();
        let second = of(7, &["jax"]).unwrap();
        assert_ne!(first, second);
        fs::write(scratch.0.join("python/pyproject.toml"), "[build-system]\n").unwrap();
        assert_ne!(second, of(7, &["jax"]).unwrap());
    }

    #[test]
    fn a_missing_requirement_file_is_named() {
        let scratch = Scratch::new("missing");
        fs::remove_file(scratch.0.join("requirements.txt")).unwrap();
        let error = stamp(&scratch.0, &interpreter(7), &contents(&["jax"])).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot read requirements.txt"),
            "{error}"
        );
    }

    #[test]
    fn only_an_equal_stamp_is_current() {
        let scratch = Scratch::new("current");
        let file = scratch.0.join("xtask-stamp");
        assert!(!is_current(&file, "a"));
        fs::write(&file, "a").unwrap();
        assert!(is_current(&file, "a"));
        assert!(!is_current(&file, "b"));
    }
}
