//! Parallel work on XLA's thread pool.

use super::api::Api;
use super::entry::contain_panic;
use super::sys;
use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard};
use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// XLA's thread pool in a running call.
#[derive(Clone, Copy)]
pub(crate) struct Pool<'a> {
    api: Api<'a>,
    ctx: *mut sys::ExecutionContext,
}

/// Pieces of work `0..total`, each claimed by one thread.
///
/// Shared with tasks in XLA's queue, which may begin after the work is done and the
/// caller has returned: such a task finds nothing left to claim and never looks at `work`.
struct Job {
    work: *const (dyn Fn(usize) + Sync),
    total: usize,
    next: AtomicUsize,
    progress: Mutex<Progress>,
    all_done: Condvar,
}

#[derive(Default)]
struct Progress {
    done: usize,
    panic: Option<Box<dyn Any + Send>>,
}

// SAFETY: `work` is `Sync` and is only called while the caller of `Pool::run` waits for
// the claimed pieces; all else is `Send` and `Sync`.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl<'a> Pool<'a> {
    /// # Safety
    /// `ctx` is the context of the running call, which outlives `'a`.
    pub(crate) unsafe fn new(api: Api<'a>, ctx: *mut sys::ExecutionContext) -> Pool<'a> {
        Pool { api, ctx }
    }

    /// The pool's number of threads, at least 1; 1 where there is no pool.
    pub(crate) fn num_threads(self) -> usize {
        // SAFETY: `new`'s promise.
        let threads = unsafe { self.api.num_threads(self.ctx) };
        threads.map_or(1, |threads| usize::try_from(threads).unwrap_or(0).max(1))
    }

    /// Calls `work` for each of `0..total`, on this thread and on free ones of the pool.
    ///
    /// This thread does every piece that no other has claimed, and waits only for pieces
    /// that are running: it never depends on a free thread, so a pool of one thread, or
    /// one full of callers, does not block it.
    pub(crate) fn run(self, total: usize, work: &(dyn Fn(usize) + Sync)) {
        let helpers = self.num_threads().min(total).saturating_sub(1);
        if helpers == 0 {
            (0..total).for_each(work);
            return;
        }
        let work: *const (dyn Fn(usize) + Sync + '_) = work;
        // SAFETY: only the lifetime changes. `work` is called for claimed pieces alone, and
        // this function returns after all of them are done.
        let work: *const (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(work) };
        let job = Arc::new(Job::new(work, total));
        for _ in 0..helpers {
            let data = Arc::into_raw(Arc::clone(&job)).cast_mut().cast();
            // SAFETY: the task takes the reference that was made for it, and `Job` is
            // made to be run at any time on any thread.
            if unsafe { self.api.schedule(self.ctx, help, data) }.is_err() {
                // SAFETY: the task was refused, so its reference is still ours.
                drop(unsafe { Arc::from_raw(data.cast::<Job>().cast_const()) });
                break;
            }
        }
        job.work_off();
        if let Some(panic) = job.wait() {
            resume_unwind(panic);
        }
    }
}

impl Job {
    fn new(work: *const (dyn Fn(usize) + Sync), total: usize) -> Job {
        Job {
            work,
            total,
            next: AtomicUsize::new(0),
            progress: Mutex::default(),
            all_done: Condvar::new(),
        }
    }

    /// Waits until all is done; the panic, if a piece had one.
    fn wait(&self) -> Option<Box<dyn Any + Send>> {
        let mut progress = self.lock();
        while progress.done < self.total {
            progress = self
                .all_done
                .wait(progress)
                .unwrap_or_else(PoisonError::into_inner);
        }
        progress.panic.take()
    }

    fn work_off(&self) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.total {
                return;
            }
            // SAFETY: the piece is claimed and not done, so the caller of `Pool::run`, who
            // holds `work`, is still there.
            let result = catch_unwind(AssertUnwindSafe(|| unsafe { (*self.work)(index) }));
            let mut progress = self.lock();
            progress.done += 1;
            match result {
                Err(panic) if progress.panic.is_none() => progress.panic = Some(panic),
                // Its drop could panic, and must not unwind while pieces are running.
                Err(panic) => _ = contain_panic(move || drop(panic)),
                Ok(()) => {}
            }
            if progress.done == self.total {
                self.all_done.notify_all();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

unsafe extern "C" fn help(data: *mut c_void) {
    // SAFETY: `data` is the reference that `Pool::run` made for this task.
    let job = unsafe { Arc::from_raw(data.cast::<Job>().cast_const()) };
    contain_panic(|| job.work_off());
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;

    /// Where the pieces write, which loom watches.
    struct Cells([UnsafeCell<u32>; 2]);

    // SAFETY: loom fails if two threads are in a cell at a time.
    unsafe impl Sync for Cells {}

    /// Two helpers, who may come when the caller is gone.
    #[test]
    fn loom_pieces_are_done_once_and_seen_by_the_caller() {
        loom::model(|| {
            let cells = Cells([UnsafeCell::new(0), UnsafeCell::new(0)]);
            let cells_for_work = &cells;
            let count = move |index: usize| {
                // SAFETY: loom fails if anyone else is in the cell.
                cells_for_work.0[index].with_mut(|count| unsafe { *count += 1 });
            };
            let work: *const (dyn Fn(usize) + Sync + '_) = &count;
            // SAFETY: only the lifetime changes. `work` is called for claimed pieces alone, and
            // `wait` returns after all of them are done.
            let work: *const (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(work) };
            let job = Arc::new(Job::new(work, 2));
            let helpers = [(); 2].map(|()| {
                let job = Arc::clone(&job);
                loom::thread::spawn(move || job.work_off())
            });
            job.work_off();
            assert!(job.wait().is_none());
            for cell in &cells.0 {
                // SAFETY: loom fails if anyone else is in the cell.
                assert_eq!(cell.with(|count| unsafe { *count }), 1);
            }
            drop(cells);
            helpers
                .into_iter()
                .for_each(|helper| helper.join().unwrap());
        });
    }
}
