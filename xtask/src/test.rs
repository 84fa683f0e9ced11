//! `cargo xtask test`: everything that CI runs.

use crate::cmd::{self, Result};
use crate::demo;
use crate::lint;
use crate::long;
use crate::python::Interpreters;
use crate::repo::{CUDA_LIBRARY, LIBRARIES, Repo};
use crate::setup::SetUp;
use crate::steps::{Outcome, Step};

/// How much is run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Extent {
    /// Without what rarely fails alone.
    Quick,
    /// What CI runs.
    #[default]
    Usual,
    /// With the long forms of tests, and the tools that take long.
    Long,
}

impl Extent {
    /// What tells tests to run in their long forms.
    fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Extent::Quick | Extent::Usual => &[],
            Extent::Long => &[
                ("CACHE_KILLS", "3000"),
                ("DAMAGES_LONG", "1"),
                ("LEAKS_LONG", "1000"),
                ("STANDIN_LONG", "200"),
            ],
        }
    }
}

/// The lints, then the tests.
pub(crate) fn steps<'a>(
    repo: &'a Repo,
    pythons: &'a Interpreters,
    extent: Extent,
    pytest_arguments: &'a [String],
) -> Vec<Step<'a>> {
    let pytest = |name, set_up: std::result::Result<SetUp, &'static str>| {
        let about = match &set_up {
            Ok(set_up) => format!("tests/python/cpu {}", set_up.about()),
            Err(why) => format!("skipped: {why}"),
        };
        let action = move || match set_up {
            Ok(set_up) => pytest(repo, &set_up, extent, pytest_arguments),
            Err(why) => Ok(Outcome::Skipped(why.to_owned())),
        };
        Step {
            needs: &["build"],
            ..Step::new(name, about, action)
        }
    };

    let quick = extent == Extent::Quick;
    let mut steps = lint::steps(repo, &pythons.default, quick);
    steps.push(Step::new(
        "rust",
        "unit, integration, UI and doc tests",
        move || {
            let mut cargo = repo.cargo("test --workspace --exclude standin");
            cmd::run(cargo.envs(extent.variables().iter().copied()))?;
            Ok(Outcome::passed())
        },
    ));
    steps.push(Step::new(
        "standin",
        "calls on a GPU against a stand-in for its driver, with every failure that it can have",
        move || {
            // The figures are what the tests print.
            let mut cargo = repo.cargo("test -p standin -- --nocapture");
            cmd::run(cargo.envs(extent.variables().iter().copied()))?;
            Ok(Outcome::passed())
        },
    ));
    steps.push(Step::new(
        "build",
        "the cdylibs that the Python tests load, in release",
        || {
            repo.build(&LIBRARIES)?;
            repo.build(&[CUDA_LIBRARY])?;
            Ok(Outcome::passed())
        },
    ));
    let default = SetUp::default(&pythons.default);
    steps.push(pytest("pytest/default", Ok(default)));
    if quick {
        return steps;
    }
    let oldest = pythons.oldest.as_ref().map(SetUp::oldest);
    let newest = pythons.newest.as_ref().map(SetUp::newest);
    steps.extend([
        pytest(
            "pytest/oldest",
            oldest.ok_or("the oldest supported JAX needs Python 3.10 to 3.13, and none was found"),
        ),
        pytest("pytest/newest", newest.ok_or("no newer interpreter found")),
        Step::new("demo", "what `cargo xtask demo` shows a newcomer", || {
            demo::demo(repo, &pythons.default).map(|()| Outcome::passed())
        }),
    ]);
    if extent == Extent::Long {
        steps.extend(long::steps(repo));
    }
    steps
}

fn pytest(repo: &Repo, set_up: &SetUp, extent: Extent, arguments: &[String]) -> Result<Outcome> {
    let (venv, versions) = set_up.make(repo)?;
    let mut pytest = venv.python_on_cpu();
    pytest.envs(repo.library_variables());
    pytest.envs(extent.variables().iter().copied());
    pytest.args(["-m", "pytest", "tests/python/cpu"]);
    pytest.args(["-p", "no:cacheprovider", "-n", workers()]);
    cmd::run(pytest.args(arguments))?;
    Ok(Outcome::Passed(versions))
}

/// Two where there are cores for it: a worker spends its start importing JAX and its life in
/// XLA's compiler, which has threads of its own.
fn workers() -> &'static str {
    match std::thread::available_parallelism() {
        Ok(cores) if cores.get() > 1 => "2",
        _ => "0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::{Interpreter, Version};

    fn python(minor: u32) -> Interpreter {
        Interpreter {
            path: format!("/opt/3.{minor}/bin/python3").into(),
            version: Version(3, minor, 0),
        }
    }

    fn plan(pythons: &Interpreters, extent: Extent) -> Vec<(&'static str, String)> {
        let steps = steps(Repo::for_tests(), pythons, extent, &[]);
        steps
            .into_iter()
            .map(|step| (step.name, step.about))
            .collect()
    }

    #[test]
    fn quick_is_the_start_of_everything_on_one_set_up() {
        let pythons = Interpreters {
            default: python(11),
            oldest: Some(python(10)),
            newest: Some(python(13)),
        };
        let all: Vec<_> = plan(&pythons, Extent::Usual)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let quick: Vec<_> = plan(&pythons, Extent::Quick)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let left_out: Vec<_> = all.iter().filter(|name| !quick.contains(name)).collect();
        assert_eq!(
            left_out,
            [
                &"lint/cuda-13000",
                &"lint/doc",
                &"lint/deny",
                &"pytest/oldest",
                &"pytest/newest",
                &"demo"
            ]
        );
        assert!(quick.iter().all(|name| all.contains(name)));
    }

    #[test]
    fn long_is_everything_and_the_tools() {
        let pythons = Interpreters {
            default: python(11),
            oldest: None,
            newest: None,
        };
        let (all, long) = (plan(&pythons, Extent::Usual), plan(&pythons, Extent::Long));
        assert_eq!(long[..all.len()], all);
        let tools: Vec<_> = long[all.len()..].iter().map(|(name, _)| *name).collect();
        assert!(
            tools.contains(&"loom") && tools.contains(&"fuzz"),
            "{tools:?}"
        );
    }

    #[test]
    fn the_plan_names_each_set_up() {
        let pythons = Interpreters {
            default: python(11),
            oldest: Some(python(10)),
            newest: None,
        };
        let plan = plan(&pythons, Extent::Usual);
        let about = |wanted| {
            let found = plan.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, about)| about.as_str()).unwrap()
        };
        assert!(about("pytest/default").contains("Python 3.11.0, the newest JAX"));
        assert!(about("pytest/oldest").contains("Python 3.10.0, jax==0.6.2"));
        assert_eq!(
            about("pytest/newest"),
            "skipped: no newer interpreter found"
        );
    }

    #[test]
    fn every_need_is_an_earlier_step() {
        let pythons = Interpreters {
            default: python(11),
            oldest: None,
            newest: None,
        };
        let mut seen = Vec::new();
        for step in steps(Repo::for_tests(), &pythons, Extent::Long, &[]) {
            assert!(
                step.needs.iter().all(|need| seen.contains(need)),
                "{}",
                step.name
            );
            seen.push(step.name);
        }
    }
}
