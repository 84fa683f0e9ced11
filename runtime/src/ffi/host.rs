//! A stand-in for XLA, for running handlers without JAX: what a call's context and errors are.

pub(crate) use super::host_table::{MINOR_VERSIONS, table};
use super::sys;
use crate::error::{Code, Error};
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// What a thread pool does with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code, reason = "tests choose"))]
pub(crate) enum Schedule {
    /// A thread for each.
    Spawn,
    /// Nothing before the handler has returned, as in a pool whose threads are all busy.
    Late,
    /// Refuses it.
    Refuse,
}

/// What a call on the host is told of where it runs.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) api_version: i32,
    pub(crate) num_threads: i64,
    pub(crate) device_ordinal: i32,
    pub(crate) run_id: i64,
}

/// What `ctx` points to.
pub(crate) struct Context {
    pub(crate) num_threads: i64,
    pub(crate) schedule: Schedule,
    pub(crate) device_ordinal: i32,
    pub(crate) run_id: i64,
    /// Null for the CPU.
    pub(crate) stream: *mut c_void,
    pub(super) state: Arc<Mutex<Option<State>>>,
    pub(super) late: Mutex<Vec<Task>>,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
}

pub(super) struct State {
    pub(super) type_id: i64,
    pub(super) state: *mut c_void,
    pub(super) deleter: unsafe extern "C" fn(*mut c_void),
}

// SAFETY: what is given as a state is `Send + Sync` by contract.
unsafe impl Send for State {}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: the state was given with this deleter, and is used no more.
        unsafe { (self.deleter)(self.state) };
    }
}

pub(super) struct Task {
    pub(super) run: unsafe extern "C" fn(*mut c_void),
    pub(super) data: *mut c_void,
}

// SAFETY: a task may run on any thread, which is what a pool is for.
unsafe impl Send for Task {}
// SAFETY: the mutexes guard the raw pointers, a state is `Send + Sync` by contract, and a
// stream is only handed on.
unsafe impl Sync for Context {}
// SAFETY: as above.
unsafe impl Send for Context {}

/// What an error points to.
pub(super) struct HostError {
    pub(super) code: i32,
    pub(super) message: CString,
}

/// An error that a handler returned.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) message: String,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        let code = Code::from_number(failure.code).unwrap_or(Code::Unknown);
        Error::new(code, failure.message)
    }
}

impl Context {
    pub(crate) fn new() -> Context {
        Context {
            num_threads: 2,
            schedule: Schedule::Spawn,
            device_ordinal: 0,
            run_id: 1,
            stream: ptr::null_mut(),
            state: Arc::default(),
            late: Mutex::default(),
            threads: Mutex::default(),
        }
    }

    /// A call of the same executable, on a device and a stream.
    pub(crate) fn on(&self, device_ordinal: i32, stream: *mut c_void) -> Context {
        let mut context = Context::new();
        context.device_ordinal = device_ordinal;
        context.stream = stream;
        context.state = Arc::clone(&self.state);
        context
    }

    /// Waits for running tasks and runs late ones.
    pub(crate) fn finish_tasks(&self) {
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            thread.join().expect("a task let a panic out");
        }
        for task in std::mem::take(&mut *lock(&self.late)) {
            // SAFETY: each task is run once.
            unsafe { (task.run)(task.data) };
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::ExecutionContext {
        ptr::from_ref(self).cast_mut().cast()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.finish_tasks();
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes an error from a handler; none for success.
///
/// # Safety
/// `error` is null or came from a handler that ran with one of these tables.
pub(crate) unsafe fn take_error(error: *mut sys::Error) -> Option<Failure> {
    if error.is_null() {
        return None;
    }
    // SAFETY: all errors of these tables are boxes of this type, owned by the taker.
    let error = unsafe { Box::from_raw(error.cast::<HostError>()) };
    Some(Failure {
        code: error.code,
        message: error.message.to_string_lossy().into_owned(),
    })
}
