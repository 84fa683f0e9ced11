//! Where things are.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cmd::{self, Result};

/// The crates whose cdylibs the Python tests load.
pub(crate) const LIBRARIES: [&str; 6] = [
    "fixture",
    "fixture_duplicate",
    "fixture_empty",
    "fixture_impostor",
    "quickstart",
    "rms_norm",
];

/// The crate whose cdylib the tests on a GPU load. It is built by itself: together with the others,
/// Cargo would turn its features on for all.
pub(crate) const CUDA_LIBRARY: &str = "fixture_cuda";

/// The crate whose cdylib the benchmarks on a GPU load.
pub(crate) const CUDA_BENCH_LIBRARY: &str = "bench-ops-cuda";

pub(crate) struct Repo {
    pub(crate) root: PathBuf,
    /// Cargo's target directory, wherever its settings put it.
    pub(crate) target: PathBuf,
    cargo: OsString,
}

impl Repo {
    pub(crate) fn locate() -> Result<Self> {
        let (Some(manifest_dir), Some(cargo)) = (
            std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from),
            std::env::var_os("CARGO"),
        ) else {
            return Err("start this program as `cargo xtask`".into());
        };
        // This program is <target>/<profile>/xtask.
        let program = std::env::current_exe()?;
        match (manifest_dir.parent(), program.ancestors().nth(2)) {
            (Some(root), Some(target)) => Ok(Self {
                root: root.to_owned(),
                target: target.to_owned(),
                cargo,
            }),
            _ => Err("start this program as `cargo xtask`".into()),
        }
    }

    /// Cargo with `arguments`, none of which has a space in it.
    pub(crate) fn cargo(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.cargo);
        command
            .current_dir(&self.root)
            .args(arguments.split_whitespace());
        command
    }

    /// Builds cdylibs in release.
    pub(crate) fn build(&self, crates: &[&str]) -> Result {
        let mut build = self.cargo("build --release");
        for name in crates {
            build.args(["-p", name]);
        }
        cmd::run(&mut build)
    }

    /// Tells the Python tests and benches where the cdylibs are.
    pub(crate) fn library_variables(&self) -> impl Iterator<Item = (String, PathBuf)> {
        LIBRARIES.iter().map(|name| {
            let variable = format!("JAX_CALLABLE_{}", name.to_uppercase());
            (variable, self.library(name))
        })
    }

    /// The cdylib that `cargo build --release` makes of the crate `name`.
    pub(crate) fn library(&self, name: &str) -> PathBuf {
        let file = format!("{DLL_PREFIX}{}{DLL_SUFFIX}", name.replace('-', "_"));
        self.target.join("release").join(file)
    }

    /// `path` as a person in the repository's root would write it.
    pub(crate) fn short<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Repo {
        pub(crate) fn for_tests() -> &'static Self {
            Box::leak(Box::new(Self {
                root: "/repo".into(),
                target: "/repo/target".into(),
                cargo: "cargo".into(),
            }))
        }
    }

    #[test]
    fn libraries_and_short_paths() {
        let repo = Repo::for_tests();
        let library = repo.library("my-ops");
        let expected = format!("target/release/{DLL_PREFIX}my_ops{DLL_SUFFIX}");
        assert_eq!(repo.short(&library).to_string(), expected);
        let elsewhere = Path::new("/elsewhere/x");
        assert_eq!(repo.short(elsewhere).to_string(), "/elsewhere/x");
    }

    #[test]
    fn each_library_has_its_variable() {
        let repo = Repo::for_tests();
        let variables: Vec<_> = repo.library_variables().collect();
        let fixture = ("JAX_CALLABLE_FIXTURE".to_owned(), repo.library("fixture"));
        assert_eq!(variables[0], fixture);
        assert_eq!(variables.len(), LIBRARIES.len());
    }

    #[test]
    fn cargo_arguments_are_split() {
        let command = Repo::for_tests().cargo("test --workspace");
        assert_eq!(
            command.get_args().collect::<Vec<_>>(),
            ["test", "--workspace"]
        );
    }
}
