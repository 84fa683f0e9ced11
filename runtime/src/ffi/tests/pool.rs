//! Parallel work, on pools that help, that are busy, and that refuse.

use super::super::host::Schedule;
use super::super::host_call::HostCall;
use super::*;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn with_pool(num_threads: i64, schedule: Schedule, work: impl FnOnce(&cpu::Context)) {
    let mut context = Context::new();
    context.num_threads = num_threads;
    context.schedule = schedule;
    context.device_ordinal = 3;
    let table = host::table(3);
    // SAFETY: the table is a static, and the context lives until the end of this function.
    let call = cpu::Context::new(unsafe { HostCall::new(table, context.as_ptr()) });
    work(&call);
    context.finish_tasks();
}

const POOLS: [(i64, Schedule); 6] = [
    (0, Schedule::Spawn),
    (1, Schedule::Spawn),
    (4, Schedule::Spawn),
    (1, Schedule::Late),
    (4, Schedule::Late),
    (4, Schedule::Refuse),
];

#[test]
fn every_index_is_done_once_whatever_the_pool_does() {
    for (num_threads, schedule) in POOLS {
        with_pool(num_threads, schedule, |cx| {
            assert_eq!(cx.num_threads(), num_threads.max(1) as usize);
            for (len, grain) in [(0, 1), (1, 1), (10, 3), (1000, 7), (5, 100)] {
                let seen = Mutex::new(BTreeSet::new());
                cx.parallel_for(len, grain, |range| {
                    assert!(range.len() <= grain);
                    for index in range {
                        assert!(seen.lock().unwrap().insert(index));
                    }
                });
                assert_eq!(seen.into_inner().unwrap(), (0..len).collect());
            }
        });
    }
}

#[test]
fn nested_loops_do_not_deadlock() {
    for (num_threads, schedule) in POOLS {
        with_pool(num_threads, schedule, |cx| {
            let count = AtomicUsize::new(0);
            cx.parallel_for(4, 1, |_| {
                cx.parallel_for(5, 1, |_| {
                    count.fetch_add(1, Ordering::Relaxed);
                });
            });
            assert_eq!(count.into_inner(), 20);
        });
    }
}

#[test]
fn chunks_are_disjoint_and_know_their_start() {
    with_pool(4, Schedule::Spawn, |cx| {
        let mut data = vec![0; 1001];
        cx.par_chunks_mut(&mut data, 10, |start, chunk| {
            for (offset, value) in chunk.iter_mut().enumerate() {
                *value = start + offset;
            }
        });
        assert!(
            data.iter()
                .enumerate()
                .all(|(index, &value)| index == value)
        );
    });
}

#[test]
fn a_panic_reaches_the_caller_after_all_pieces() {
    for (num_threads, schedule) in POOLS {
        with_pool(num_threads, schedule, |cx| {
            let done = AtomicUsize::new(0);
            let result = catch_unwind(AssertUnwindSafe(|| {
                cx.parallel_for(100, 1, |range| {
                    done.fetch_add(1, Ordering::Relaxed);
                    assert!(range.start % 10 != 5, "piece {}", range.start);
                });
            }));
            let panic = result.unwrap_err();
            let message = panic.downcast_ref::<String>().unwrap();
            assert!(message.starts_with("piece "), "{message}");
            // On one thread alone the first panic ends the loop.
            if num_threads > 1 {
                assert_eq!(done.into_inner(), 100);
            }
        });
    }
}

#[test]
fn the_context_tells_where_it_runs() {
    with_pool(1, Schedule::Spawn, |cx| {
        assert_eq!(cx.device_ordinal().unwrap(), 3);
        assert_eq!(cx.run_id().unwrap(), 1);
    });
}
