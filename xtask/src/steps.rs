//! A list of steps: choosing some of them, running them in order, saying how they went.

use std::time::{Duration, Instant};

use crate::cmd::Result;

pub(crate) enum Outcome {
    /// Done, with a remark or none.
    Passed(String),
    /// Not done here, and why.
    Skipped(String),
}

impl Outcome {
    pub(crate) fn passed() -> Self {
        Self::Passed(String::new())
    }
}

pub(crate) struct Step<'a> {
    /// `group/step`, or one word.
    pub(crate) name: &'static str,
    pub(crate) about: String,
    /// Names of the earlier steps without which this one means nothing.
    pub(crate) needs: &'static [&'static str],
    pub(crate) action: Box<dyn FnOnce() -> Result<Outcome> + 'a>,
}

impl<'a> Step<'a> {
    pub(crate) fn new(
        name: &'static str,
        about: impl Into<String>,
        action: impl FnOnce() -> Result<Outcome> + 'a,
    ) -> Self {
        Self {
            name,
            about: about.into(),
            needs: &[],
            action: Box::new(action),
        }
    }

    fn answers_to(&self, filter: &str) -> bool {
        let mut parts = self.name.split('/');
        self.name == filter || parts.any(|part| part == filter)
    }
}

/// The steps that a filter names, with what they need; all of them if there is no filter.
pub(crate) fn choose<'a>(steps: Vec<Step<'a>>, filters: &[String]) -> Result<Vec<Step<'a>>> {
    let unknown = |filter: &&String| !steps.iter().any(|step| step.answers_to(filter));
    if let Some(filter) = filters.iter().find(unknown) {
        let names: Vec<_> = steps.iter().map(|step| step.name).collect();
        return Err(format!("no step `{filter}`; there are: {}", names.join(", ")).into());
    }
    let mut wanted = Vec::new();
    // Backwards, because what a step needs comes before it.
    for step in steps.iter().rev() {
        let named = filters.is_empty() || filters.iter().any(|filter| step.answers_to(filter));
        if named || wanted.contains(&step.name) {
            wanted.push(step.name);
            wanted.extend(step.needs);
        }
    }
    let chosen = steps.into_iter();
    Ok(chosen.filter(|step| wanted.contains(&step.name)).collect())
}

/// Runs the steps in order up to the first that fails, and prints plan, times and summary; `again`
/// is the command that runs a step again.
pub(crate) fn run(steps: Vec<Step<'_>>, again: impl Fn(&str) -> String) -> Result {
    let count = steps.len();
    let width = steps.iter().map(|step| step.name.len()).max().unwrap_or(0);
    eprintln!("Plan");
    for (index, step) in steps.iter().enumerate() {
        eprintln!("  {:>2}. {:width$}  {}", index + 1, step.name, step.about);
    }

    let start = Instant::now();
    let mut report = Report::default();
    for (index, step) in steps.into_iter().enumerate() {
        if report.failed.is_some() {
            report
                .rows
                .push((step.name, String::new(), "not run".to_owned()));
            continue;
        }
        eprintln!("\n[{}/{count}] {}: {}", index + 1, step.name, step.about);
        let step_start = Instant::now();
        let outcome = (step.action)();
        let time = seconds(step_start.elapsed());
        report.add(step.name, time, outcome);
    }
    eprint!("\n{}", report.text(width, start.elapsed()));
    match report.failed {
        Some(name) => {
            let command = again(name);
            Err(format!("{name} failed; run it again with `cargo xtask {command}`").into())
        }
        None => Ok(()),
    }
}

#[derive(Default)]
struct Report {
    /// Name, time, how it went.
    rows: Vec<(&'static str, String, String)>,
    passed: usize,
    skipped: usize,
    failed: Option<&'static str>,
}

impl Report {
    fn add(&mut self, name: &'static str, time: String, outcome: Result<Outcome>) {
        let (time, how) = match outcome {
            Ok(Outcome::Passed(remark)) => {
                self.passed += 1;
                (time, format!("passed  {remark}"))
            }
            Ok(Outcome::Skipped(why)) => {
                self.skipped += 1;
                (String::new(), format!("skipped: {why}"))
            }
            Err(error) => {
                eprintln!("{error}");
                self.failed = Some(name);
                (time, "FAILED".to_owned())
            }
        };
        eprintln!("{name}: {}", format!("{time}  {how}").trim());
        self.rows.push((name, time, how));
    }

    fn text(&self, width: usize, total: Duration) -> String {
        let row = |(name, time, how): &(&str, String, String)| {
            let row = format!("  {name:width$}  {time:>12}  {how}");
            format!("{}\n", row.trim_end())
        };
        let rows: String = self.rows.iter().map(row).collect();
        let Self {
            passed, skipped, ..
        } = self;
        let failed = usize::from(self.failed.is_some());
        let total = seconds(total);
        format!(
            "Summary, {total}\n{rows}steps: {passed} passed, {failed} failed, {skipped} skipped\n"
        )
    }
}

/// `7.3 s`, `2 min 05 s`.
pub(crate) fn seconds(time: Duration) -> String {
    let whole = time.as_secs();
    if whole < 60 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min {:02} s", whole / 60, whole % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn step(name: &'static str, needs: &'static [&'static str]) -> Step<'static> {
        Step {
            needs,
            ..Step::new(name, "", || Ok(Outcome::passed()))
        }
    }

    fn plan() -> Vec<Step<'static>> {
        vec![
            step("lint/fmt", &[]),
            step("lint/clippy", &[]),
            step("build", &[]),
            step("pytest/default", &["build"]),
            step("pytest/oldest", &["build"]),
        ]
    }

    fn chosen(filters: &[&str]) -> Vec<&'static str> {
        let filters: Vec<String> = filters.iter().map(ToString::to_string).collect();
        let steps = choose(plan(), &filters).unwrap();
        steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn a_filter_names_a_step_a_group_or_the_last_part() {
        assert_eq!(chosen(&[]).len(), plan().len());
        assert_eq!(chosen(&["lint"]), ["lint/fmt", "lint/clippy"]);
        assert_eq!(chosen(&["clippy"]), ["lint/clippy"]);
        assert_eq!(
            chosen(&["pytest/oldest", "fmt"]),
            ["lint/fmt", "build", "pytest/oldest"]
        );
    }

    #[test]
    fn an_unknown_filter_lists_the_steps() {
        let error = choose(plan(), &["pytests".to_owned()])
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("`pytests`") && error.contains("pytest/oldest"),
            "{error}"
        );
    }

    #[test]
    fn the_first_failure_stops_the_rest_and_is_named() {
        let ran = &RefCell::new(Vec::new());
        let step = |name, outcome: fn() -> Result<Outcome>| {
            Step::new(name, "", move || {
                ran.borrow_mut().push(name);
                outcome()
            })
        };
        let steps = vec![
            step("a", || Ok(Outcome::passed())),
            step("b", || Ok(Outcome::Skipped("no b here".to_owned()))),
            step("c", || Err("broken".into())),
            step("d", || Ok(Outcome::passed())),
        ];
        let error = run(steps, |name| format!("test {name}")).unwrap_err();
        assert_eq!(*ran.borrow(), ["a", "b", "c"]);
        let expected = "c failed; run it again with `cargo xtask test c`";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_summary_counts_and_says_why() {
        let mut report = Report::default();
        report.add("a", "1.0 s".to_owned(), Ok(Outcome::passed()));
        report.add(
            "b",
            "0.0 s".to_owned(),
            Ok(Outcome::Skipped("no b here".to_owned())),
        );
        report.add("c", "2.0 s".to_owned(), Err("broken".into()));
        let text = report.text(3, Duration::from_secs(3));
        assert!(text.starts_with("Summary, 3.0 s\n"), "{text}");
        assert!(
            text.contains("skipped: no b here") && text.contains("FAILED"),
            "{text}"
        );
        assert!(
            text.ends_with("steps: 1 passed, 1 failed, 1 skipped\n"),
            "{text}"
        );
    }

    #[test]
    fn times_are_short() {
        assert_eq!(seconds(Duration::from_millis(7340)), "7.3 s");
        assert_eq!(seconds(Duration::from_millis(125_900)), "2 min 05 s");
    }
}
