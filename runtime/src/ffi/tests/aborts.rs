//! What a handler cannot report, because its host gave it nothing to do so.

use super::*;
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
fn a_host_that_gives_nothing_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;

    for missing in ["a frame", "its API table"] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "ffi::tests::aborts::child", "--nocapture"]);
        let output = child.env(CHILD, missing).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        let expected = format!("jax-callable: XLA called a handler without {missing}");
        assert!(text.contains(&expected), "{text}");
        const SIGABRT: i32 = 6;
        assert_eq!(output.status.signal(), Some(SIGABRT), "{text}");
    }
}
