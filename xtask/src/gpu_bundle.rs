//! `cargo xtask gpu-bundle`: what a machine with a GPU, but without Rust, needs for the tests
//! and benchmarks.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::cmd::{self, Result};
use crate::repo::{CUDA_BENCH_LIBRARY, CUDA_LIBRARY, Repo};

/// What the bundle may weigh, to be carried over slow connections.
const LIMIT: u64 = 60 << 20;

const RUN: &str = include_str!("gpu_bundle_run.sh");

/// With CUDA and without. Each is built by itself: together, Cargo would turn the first one's
/// features on for all.
const BUNDLED: [&str; 3] = [CUDA_LIBRARY, CUDA_BENCH_LIBRARY, "fixture"];

/// Builds the libraries and lays out the bundle anew.
pub(crate) fn gpu_bundle(repo: &Repo) -> Result {
    let bundle = repo.target.join("gpu-bundle");
    if bundle.exists() {
        fs::remove_dir_all(&bundle)?;
    }
    fs::create_dir_all(bundle.join("lib"))?;
    for name in BUNDLED {
        cmd::run(repo.cargo("build --profile bundle -p").arg(name))?;
        let library = repo.library(name);
        let file = library.file_name().ok_or("a library has a name")?;
        let built = repo.target.join("bundle").join(file);
        fs::copy(built, bundle.join("lib").join(file))?;
    }
    copy_sources(
        &repo.root.join("python/jax_callable"),
        &bundle.join("python/jax_callable"),
    )?;
    copy_sources(&repo.root.join("tests/python/gpu"), &bundle.join("tests"))?;
    copy_sources(&repo.root.join("benches/cuda"), &bundle.join("bench"))?;
    let run = bundle.join("run.sh");
    fs::write(&run, RUN)?;
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755))?;

    let size = size(&bundle)?;
    if size > LIMIT {
        return Err(format!("the bundle has {size} bytes, which is more than {LIMIT}").into());
    }
    eprintln!("{}: {} KiB", repo.short(&bundle), size >> 10);
    eprintln!(
        "on a machine with a GPU, JAX for CUDA and pytest: gpu-bundle/run.sh [PYTEST ARGS...], \
         run.sh sanitize, run.sh bench"
    );
    Ok(())
}

/// Copies a folder of a Python package or of tests, without what Python left in it.
fn copy_sources(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if name == "__pycache__" {
            continue;
        }
        if path.is_dir() {
            copy_sources(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

fn size(path: &Path) -> io::Result<u64> {
    if !path.is_dir() {
        return Ok(path.metadata()?.len());
    }
    fs::read_dir(path)?.map(|entry| size(&entry?.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_copied_without_caches() {
        let folder = std::env::temp_dir().join(format!("xtask-bundle-{}", std::process::id()));
        let from = folder.join("from");
        fs::create_dir_all(from.join("inner/__pycache__")).unwrap();
        fs::write(from.join("inner/a.py"), "12345").unwrap();
        fs::write(from.join("inner/__pycache__/a.pyc"), "").unwrap();
        let to = folder.join("to");
        copy_sources(&from, &to).unwrap();
        assert!(to.join("inner/a.py").is_file());
        assert!(!to.join("inner/__pycache__").exists());
        assert_eq!(size(&to).unwrap(), 5);
        fs::remove_dir_all(folder).unwrap();
    }
}
