//! Finding Python interpreters.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use crate::cmd::Result;

/// What the package supports.
const OLDEST_PYTHON: Version = Version(3, 10, 0);
/// What the oldest supported JAX has wheels for: one minor version less than this.
const TOO_NEW_FOR_OLDEST_JAX: Version = Version(3, 14, 0);
/// The minor versions looked for by name, newest first.
const MINORS: [u32; 5] = [14, 13, 12, 11, 10];

/// Written for any Python, so that an old one can say how old it is.
const PROBE: &str = "
import sys
missing = []
for name in ('venv', 'ensurepip', 'ctypes', 'ssl'):
    try:
        __import__(name)
    except ImportError:
        missing.append(name)
print('%d.%d.%d' % sys.version_info[:3])
print(sys.executable)
print(', '.join(missing))
";

const HOW_TO_INSTALL: &str = "\
Install one:
  Debian, Ubuntu    apt install python3 python3-venv
  Fedora            dnf install python3
  elsewhere         pyenv install 3.12, or uv python install 3.12
or set XTASK_PYTHON to the interpreter to use.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let mut parts = text.split('.').map(|part| part.parse().map_err(drop));
        let mut next = || parts.next().unwrap_or(Err(()));
        let version = Self(next()?, next()?, next()?);
        parts.next().is_none().then_some(version).ok_or(())
    }
}

/// An interpreter that can make a virtual environment for this package.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Interpreter {
    pub(crate) path: PathBuf,
    pub(crate) version: Version,
}

/// The interpreters of the three JAX set-ups; `None` where no suitable one was found.
pub(crate) struct Interpreters {
    pub(crate) default: Interpreter,
    pub(crate) oldest: Option<Interpreter>,
    pub(crate) newest: Option<Interpreter>,
}

impl Interpreters {
    pub(crate) fn find() -> Result<Self> {
        let default = default()?;
        let mut found = probe_all(every_candidate()).0;
        found.push(default.clone());
        Ok(Self::choose(default, &found))
    }

    fn choose(default: Interpreter, found: &[Interpreter]) -> Self {
        let oldest = found
            .iter()
            .filter(|python| python.version < TOO_NEW_FOR_OLDEST_JAX)
            .min_by_key(|python| python.version);
        let minor = |python: &Interpreter| (python.version.0, python.version.1);
        let newest = found
            .iter()
            .filter(|python| minor(python) > minor(&default))
            .max_by_key(|python| python.version);
        Self {
            oldest: oldest.cloned(),
            newest: newest.cloned(),
            default,
        }
    }
}

/// The first `python3` on PATH that will do, else the newest one found anywhere.
pub(crate) fn default() -> Result<Interpreter> {
    if let Some(path) = std::env::var_os("XTASK_PYTHON") {
        let path = PathBuf::from(path);
        return probe(&path).map_err(|why| {
            format!("XTASK_PYTHON={}: {why}\n{}", path.display(), requirement()).into()
        });
    }
    let mut refused = Vec::new();
    for path in on_path("python3").into_iter().chain(on_path("python")) {
        match probe(&path) {
            Ok(python) => return Ok(python),
            Err(why) => refused.push(format!("  {}: {why}", path.display())),
        }
    }
    let (found, others) = probe_all(every_candidate());
    refused.extend(others);
    found
        .into_iter()
        .max_by_key(|python| python.version)
        .ok_or_else(|| nothing_found(&refused).into())
}

fn requirement() -> String {
    let Version(major, minor, _) = OLDEST_PYTHON;
    format!("needed: Python {major}.{minor} or newer with the modules venv, ensurepip, ctypes, ssl")
}

fn nothing_found(refused: &[String]) -> String {
    let seen = if refused.is_empty() {
        "  found none on PATH, in pyenv or uv".to_owned()
    } else {
        refused.join("\n")
    };
    format!(
        "no usable Python; {}\n{seen}\n{HOW_TO_INSTALL}",
        requirement()
    )
}

fn every_candidate() -> Vec<PathBuf> {
    let mut candidates = Vec::new();
    for minor in MINORS {
        candidates.extend(on_path(&format!("python3.{minor}")));
    }
    candidates.extend(of_pyenv());
    candidates.extend(of_uv());
    candidates
}

/// Every `name` in PATH's directories: the first may be a shim that runs nothing.
fn on_path(name: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .filter(|file| file.is_file())
        .collect()
}

fn of_pyenv() -> Vec<PathBuf> {
    let root = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".pyenv")));
    root.map(|root| installed_in(&root.join("versions")))
        .unwrap_or_default()
}

fn of_uv() -> Vec<PathBuf> {
    match Command::new("uv").args(["python", "dir"]).output() {
        Ok(output) if output.status.success() => {
            installed_in(Path::new(String::from_utf8_lossy(&output.stdout).trim()))
        }
        _ => Vec::new(),
    }
}

/// The interpreters of a directory that holds one installation per entry.
fn installed_in(versions: &Path) -> Vec<PathBuf> {
    let entries = versions.read_dir().into_iter().flatten().flatten();
    entries
        .map(|version| version.path().join("bin/python3"))
        .filter(|file| file.is_file())
        .collect()
}

/// The usable interpreters, and why each other one is not.
fn probe_all(paths: Vec<PathBuf>) -> (Vec<Interpreter>, Vec<String>) {
    let (mut usable, mut refused) = (Vec::<Interpreter>::new(), Vec::new());
    for path in paths {
        match probe(&path) {
            Ok(python) if usable.contains(&python) => {}
            Ok(python) => usable.push(python),
            Err(why) => refused.push(format!("  {}: {why}", path.display())),
        }
    }
    refused.sort();
    refused.dedup();
    (usable, refused)
}

fn probe(path: &Path) -> std::result::Result<Interpreter, String> {
    let output = Command::new(path)
        .args(["-c", PROBE])
        .env_remove("PYTHONPATH")
        .env_remove("PYTHONHOME")
        .output()
        .map_err(|error| format!("does not run: {error}"))?;
    if !output.status.success() {
        return Err(format!("does not run: {}", output.status));
    }
    parse_probe(&String::from_utf8_lossy(&output.stdout))
}

fn parse_probe(answer: &str) -> std::result::Result<Interpreter, String> {
    let mut lines = answer.lines();
    let (version, path) = (lines.next(), lines.next());
    let missing = lines.next().unwrap_or_default();
    let (Some(version), Some(path)) = (version.and_then(|text| text.parse().ok()), path) else {
        return Err(format!("is no Python: it answered {answer:?}"));
    };
    if version < OLDEST_PYTHON {
        return Err(format!("Python {version} is too old"));
    }
    if !missing.is_empty() {
        return Err(format!("Python {version} lacks {missing}"));
    }
    Ok(Interpreter {
        path: path.into(),
        version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(version: &str) -> Interpreter {
        Interpreter {
            path: format!("/opt/{version}/bin/python3").into(),
            version: version.parse().unwrap(),
        }
    }

    #[test]
    fn versions_parse_and_compare_as_numbers() {
        assert_eq!("3.11.7".parse(), Ok(Version(3, 11, 7)));
        assert!(Version(3, 9, 18) < Version(3, 10, 0));
        for wrong in ["", "3", "3.11", "3.11.7.1", "3.x.1", "3.11.7rc1", "-3.1.1"] {
            assert_eq!(wrong.parse::<Version>(), Err(()), "{wrong:?}");
        }
    }

    #[test]
    fn a_probe_says_why_an_interpreter_will_not_do() {
        let usable = parse_probe("3.10.0\n/usr/bin/python3\n\n").unwrap();
        assert_eq!(usable.version, OLDEST_PYTHON);
        assert_eq!(usable.path, Path::new("/usr/bin/python3"));

        let old = parse_probe("2.7.18\n/usr/bin/python\nvenv, ensurepip\n").unwrap_err();
        assert_eq!(old, "Python 2.7.18 is too old");
        let bare = parse_probe("3.11.2\n/usr/bin/python3\nensurepip\n").unwrap_err();
        assert_eq!(bare, "Python 3.11.2 lacks ensurepip");
        assert!(parse_probe("hello\n").is_err());
    }

    #[test]
    fn the_oldest_jax_gets_the_oldest_python_and_the_newest_a_newer_one() {
        let found = ["3.13.0", "3.10.13", "3.11.7", "3.12.1"].map(python);
        let chosen = Interpreters::choose(python("3.11.7"), &found);
        assert_eq!(chosen.oldest, Some(python("3.10.13")));
        assert_eq!(chosen.newest, Some(python("3.13.0")));
    }

    #[test]
    fn a_later_patch_release_is_no_newer_interpreter() {
        let found = ["3.12.1", "3.12.9"].map(python);
        let chosen = Interpreters::choose(python("3.12.1"), &found);
        assert_eq!(chosen.newest, None);
        assert_eq!(chosen.oldest, Some(python("3.12.1")));
    }

    #[test]
    fn the_oldest_jax_is_left_out_when_every_python_is_too_new_for_it() {
        let chosen = Interpreters::choose(python("3.14.0"), &[python("3.14.0")]);
        assert_eq!((chosen.oldest, chosen.newest), (None, None));
    }

    #[test]
    fn the_error_lists_what_was_seen_and_what_to_install() {
        let refused = vec!["  /usr/bin/python3: Python 3.11.2 lacks ensurepip".to_owned()];
        let error = nothing_found(&refused);
        for part in [
            "Python 3.10 or newer",
            "lacks ensurepip",
            "apt install",
            "XTASK_PYTHON",
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
        assert!(nothing_found(&[]).contains("found none"));
    }
}
