//! Threads that call a library at once, which nobody has used yet.

use super::super::slot::Slot;
use super::*;
use crate::registry::Declaration;
use std::collections::BTreeSet;
#[cfg(unix)]
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::Ordering;
use std::thread;

const THREADS: usize = 16;
/// What the child exits with.
const ALL_RIGHT: i32 = 42;
const CHILD: &str = "JAX_CALLABLE_TEST_FIRST_CALL";

/// What each of the threads finds, which begin at once.
fn at_once<T: Send>(find: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        let (barrier, find) = (&barrier, &find);
        let begin = |i| {
            scope.spawn(move || {
                barrier.wait();
                find(i)
            })
        };
        let threads: Vec<_> = (0..THREADS).map(begin).collect();
        let found = threads.into_iter().map(|thread| thread.join().unwrap());
        found.collect()
    })
}

#[test]
fn a_registration_is_made_once() {
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        let mut declaration = Declaration::new::<Def>();
        declaration.slot = Box::leak(Box::new(Slot::new()));
        let declaration: &'static _ = Box::leak(Box::new(declaration));
        let found = at_once(|i| {
            // Half of them make it, and the others wait for it.
            let is_filled = &declaration.slot.is_filled;
            while i % 2 == 1 && !is_filled.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            let registration = match i % 2 {
                0 => declaration.registration(),
                _ => declaration.slot.get(),
            };
            let callable = registration.callable;
            assert_eq!((callable.name, callable.params.len()), ("saxpy_sum", 5));
            (
                &raw const *registration as usize,
                &raw const *callable as usize,
            )
        });
        // Each making of a description has another address.
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>().len(), 1);
    }
}

/// Runs in a process of its own, in which no handler was called before.
#[test]
fn child() {
    if std::env::var(CHILD).is_ok() {
        let sums = at_once(|_| {
            let mut case = Case::new();
            case.run().unwrap();
            case.sum[0]
        });
        assert_eq!(sums, [69.0; THREADS]);
        std::process::exit(ALL_RIGHT);
    }
}

#[cfg(unix)]
#[test]
#[cfg_attr(miri, ignore = "it starts processes")]
fn handlers_may_be_called_at_once() {
    for _ in 0..20 {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "ffi::tests::first_call::child", "--nocapture"]);
        let output = child.env(CHILD, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(ALL_RIGHT), "{text}");
    }
}
