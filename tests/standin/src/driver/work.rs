//! What streams and graphs do.

use super::call::in_callback;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// One piece of work.
#[derive(Clone)]
pub(crate) enum Work {
    Kernel(Kernel),
    Memset(Memset),
    Copy(Copy),
    Host(HostCall),
    /// The beginning of an allocation's life in its stream or graph.
    Allocate(u64),
    Free(u64),
    /// The same in a graph, which owns the memory.
    AllocateInGraph(Arc<GraphMemory>),
    FreeInGraph(Arc<GraphMemory>),
    Record(Arc<Mark>),
    Wait(Arc<Mark>),
    Graph(Arc<Launched>),
}

#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) function: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) params: Vec<Box<[u8]>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memset {
    pub(crate) dst: u64,
    pub(crate) value: u32,
    pub(crate) element: u32,
    pub(crate) width: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Copy {
    pub(crate) from: Side,
    pub(crate) to: Side,
    pub(crate) bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Host(u64),
    Device(u64),
}

#[derive(Clone, Copy)]
pub(crate) struct HostCall {
    pub(crate) function: unsafe extern "C" fn(*mut c_void),
    pub(crate) data: *mut c_void,
}

// SAFETY: who gives the function promises that any thread may call it.
unsafe impl Send for HostCall {}
// SAFETY: as above.
unsafe impl Sync for HostCall {}

/// A place in a queue, at which an event was recorded.
pub(crate) struct Mark {
    pub(crate) is_done: AtomicBool,
    pub(crate) queue: u64,
}

/// A graph as it was when it was launched.
pub(crate) struct Launched {
    /// Each with the numbers of those that it waits for.
    pub(crate) nodes: Vec<(Work, Vec<usize>)>,
    /// They stay until the graph has run.
    pub(crate) _objects: Vec<Arc<UserObject>>,
}

/// Memory that a graph allocates whenever it runs.
pub(crate) struct GraphMemory(pub(crate) u64);

/// Graph memory whose graphs are gone.
pub(crate) static ORPHANS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

impl Drop for GraphMemory {
    fn drop(&mut self) {
        ORPHANS.lock().expect("nothing panics with it").push(self.0);
    }
}

/// A value that graphs keep.
pub(crate) struct UserObject(pub(crate) HostCall);

/// How many there are.
pub(crate) static USER_OBJECTS: AtomicU64 = AtomicU64::new(0);

impl UserObject {
    pub(crate) fn new(destroy: HostCall) -> Arc<UserObject> {
        USER_OBJECTS.fetch_add(1, Ordering::Relaxed);
        Arc::new(UserObject(destroy))
    }
}

impl Drop for UserObject {
    fn drop(&mut self) {
        USER_OBJECTS.fetch_sub(1, Ordering::Relaxed);
        self.0.call();
    }
}

impl HostCall {
    pub(crate) fn call(&self) {
        // SAFETY: who gave the function promised that it may be called once with this.
        in_callback(|| unsafe { (self.function)(self.data) });
    }
}
