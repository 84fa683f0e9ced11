//! Running other programs.

use std::error::Error;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Runs `command`, its output shown as it comes.
pub(crate) fn run(command: &mut Command) -> Result {
    eprintln!("$ {}", line(command));
    let status = command
        .status()
        .map_err(|error| cannot_run(command, &error))?;
    check(command, status)
}

/// Runs `command` and returns its standard output; what it wrote is shown only if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| cannot_run(command, &error))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        eprint!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    }
    check(command, output.status)?;
    Ok(stdout)
}

/// Whether `command` can be run and succeeds; says nothing.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn check(command: &Command, status: ExitStatus) -> Result {
    if status.success() {
        return Ok(());
    }
    Err(format!("`{}` failed: {status}", line(command)).into())
}

fn cannot_run(command: &Command, error: &std::io::Error) -> String {
    let program = command.get_program().to_string_lossy();
    format!("cannot run `{program}`: {error}")
}

/// The command as a person would type it in its directory.
fn line(command: &Command) -> String {
    let directory = command
        .get_current_dir()
        .map(|path| format!("{}/", path.display()));
    let short = |word: &OsStr| {
        let word = word.to_string_lossy();
        match &directory {
            Some(directory) => word.replace(directory, ""),
            None => word.into_owned(),
        }
    };
    let settings = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", short(name), short(value?))));
    let program = match Path::new(command.get_program()) {
        // Cargo tells where it is; nobody types that.
        path if path.ends_with("bin/cargo") => "cargo".to_owned(),
        path => short(path.as_os_str()),
    };
    let arguments = command.get_args().map(short);
    let words: Vec<_> = settings.chain([program]).chain(arguments).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_what_a_person_would_type() {
        let mut command = Command::new("/toolchain/bin/cargo");
        command
            .env("RUSTDOCFLAGS", "-Dwarnings")
            .env_remove("PYTHONPATH")
            .args(["doc", "--no-deps"]);
        assert_eq!(
            line(&command),
            "RUSTDOCFLAGS=-Dwarnings cargo doc --no-deps"
        );

        let mut command = Command::new("/repo/target/venvs/tools/bin/python");
        command.current_dir("/repo").args(["-c", "/repo/x", "/y"]);
        assert_eq!(line(&command), "target/venvs/tools/bin/python -c x /y");
    }

    #[test]
    fn failures_name_the_command() {
        let failed = run(&mut Command::new("false")).unwrap_err().to_string();
        assert!(
            failed.starts_with("`false` failed: exit status: 1"),
            "{failed}"
        );
        let absent = run(&mut Command::new("no-such-program"))
            .unwrap_err()
            .to_string();
        assert!(absent.contains("cannot run `no-such-program`"), "{absent}");
        assert!(!succeeds(&mut Command::new("no-such-program")));
    }

    #[test]
    fn output_is_returned() {
        assert_eq!(
            output(Command::new("echo").arg("hello")).unwrap(),
            "hello\n"
        );
    }
}
