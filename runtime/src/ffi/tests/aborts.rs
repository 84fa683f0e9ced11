//! What cannot be reported: a host gave a handler nothing to do so, or there is no handler yet.

use super::*;
use crate::registry::Declaration;
#[cfg(unix)]
use std::process::Command;
use std::ptr;

const CHILD: &str = "JAX_CALLABLE_TEST_ABORTS";

/// Runs in a process of its own, which it ends.
#[test]
fn child() {
    let Ok(missing) = std::env::var(CHILD) else {
        return;
    };
    if missing == "a frame" {
        // SAFETY: null is what the handler must notice.
        unsafe { entry::handler::<Def>(ptr::null_mut()) };
    } else if missing == "a description" {
        let mut damaged = Declaration::new::<Def>();
        damaged.text = "1:5:saxp";
        Box::leak(Box::new(damaged)).registration();
    } else {
        let mut case = Case::new();
        // SAFETY: as above.
        let _ = unsafe {
            case.frame
                .call(entry::handler::<Def>, ptr::null(), &Context::new())
        };
    }
}

#[cfg(unix)]
#[test]
#[cfg_attr(miri, ignore = "it starts processes")]
fn what_cannot_be_reported_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;

    for (missing, expected) in [
        ("a frame", "XLA called a handler without a frame"),
        (
            "its API table",
            "XLA called a handler without its API table",
        ),
        (
            "a description",
            "internal error: \"1:5:saxp\" is not the description of a callable",
        ),
    ] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "ffi::tests::aborts::child", "--nocapture"]);
        let output = child.env(CHILD, missing).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        let expected = format!("jax-callable: {expected}");
        assert!(text.contains(&expected), "{text}");
        const SIGABRT: i32 = 6;
        assert_eq!(output.status.signal(), Some(SIGABRT), "{text}");
    }
}
