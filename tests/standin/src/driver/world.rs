//! Everything that there is, and the scheduler.

use super::call::IN_CALLBACKS;
use super::capture::Capture;
use super::fault::Faults;
use super::graph::{Executable, Graph, Node};
use super::kernels;
use super::memory::{Memory, State};
use super::random::Random;
use super::stream::{Event, Stream};
use super::table::Table;
use super::work::{Copy, Launched, Memset, ORPHANS, Side, UserObject, Work};
use super::{DEVICES, Result, misuse};
use cudarc::driver::sys::CUresult;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

pub(crate) struct World {
    pub(crate) is_initialised: bool,
    /// How often each primary context is retained.
    pub(crate) contexts: [u64; DEVICES],
    pub(crate) streams: Table<Stream>,
    pub(crate) events: Table<Event>,
    /// The devices and kernels of modules.
    pub(crate) modules: Table<(usize, BTreeSet<String>)>,
    pub(crate) functions: Table<Function>,
    pub(crate) graphs: Table<Graph>,
    pub(crate) nodes: Table<Node>,
    pub(crate) executables: Table<Executable>,
    /// User objects with the references that the user has.
    pub(crate) objects: Table<(Arc<UserObject>, u32)>,
    pub(crate) captures: Table<Capture>,
    pub(crate) memory: Memory,
    /// Work by stream, which stays when the stream is destroyed.
    queues: BTreeMap<u64, Queue>,
    /// Runs work at random moments. Without it, none runs that nobody waits for.
    pub(crate) random: Option<Random>,
    pub(crate) misuses: Vec<String>,
    pub(crate) faults: Faults,
    /// Whether functions seem to have no parameters.
    pub(crate) hides_params: bool,
    /// Whether a captured graph may have the handle of the one that was destroyed last, and which.
    pub(crate) reuses_graphs: bool,
    pub(crate) spare_graph: Option<u64>,
    next: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub(crate) module: u64,
    pub(crate) device: usize,
    pub(crate) kernel: &'static kernels::Kernel,
}

struct Queue {
    device: usize,
    work: VecDeque<Work>,
}

/// What became of a queue's first piece of work.
pub(crate) enum Step {
    Ran,
    /// It waits for this queue.
    Blocked(u64),
    Empty,
}

// SAFETY: the pointers in it are handed on only, or given by users for use on any thread.
unsafe impl Send for World {}

thread_local! {
    /// The handle of the current context, or 0.
    pub(crate) static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// The world, locked.
pub(crate) fn world() -> MutexGuard<'static, World> {
    static WORLD: LazyLock<Mutex<World>> = LazyLock::new(|| Mutex::new(World::new()));
    WORLD.lock().expect("the stand-in does not panic")
}

/// The handle of a device's primary context.
pub(crate) fn context(device: usize) -> u64 {
    0x1000 + 0x10 * device as u64
}

impl World {
    fn new() -> World {
        World {
            is_initialised: false,
            contexts: [0; DEVICES],
            streams: Table::new("stream"),
            events: Table::new("event"),
            modules: Table::new("module"),
            functions: Table::new("function"),
            graphs: Table::new("graph"),
            nodes: Table::new("graph node"),
            executables: Table::new("executable graph"),
            objects: Table::new("user object"),
            captures: Table::new("capture"),
            memory: Memory::default(),
            queues: BTreeMap::new(),
            random: None,
            misuses: Vec::new(),
            faults: Faults::default(),
            hides_params: false,
            reuses_graphs: false,
            spare_graph: None,
            next: 0x10_0000,
        }
    }

    /// A handle that nothing has had.
    pub(crate) fn handle(&mut self) -> u64 {
        self.next += 0x10;
        self.next
    }

    /// The device of the current context.
    pub(crate) fn current(&self) -> Result<usize> {
        let current = CURRENT.get();
        let mut devices = 0..DEVICES;
        match devices.find(|&device| context(device) == current && self.contexts[device] > 0) {
            Some(device) => Ok(device),
            None => Err(CUresult::CUDA_ERROR_INVALID_CONTEXT.into()),
        }
    }

    /// Whether a device's context is the current one, which what belongs to it should see.
    pub(crate) fn expect_current(&self, device: usize, what: &str) -> Result {
        match self.current() {
            Ok(current) if current == device => Ok(()),
            current => {
                let current = current.ok();
                let text = format!("{what} of device {device}, with {current:?} current");
                Err(misuse(CUresult::CUDA_ERROR_INVALID_CONTEXT, text))
            }
        }
    }

    /// The same for what ends something. After a failure, which may have been that of making the
    /// context current, it need not be: handles tell what they belong to.
    pub(crate) fn prefer_current(&self, device: usize, what: &str) -> Result {
        match self.faults.failures {
            0 => self.expect_current(device, what),
            _ => Ok(()),
        }
    }

    /// Puts work at the end of a queue.
    pub(crate) fn push(&mut self, queue: u64, device: usize, work: Work) {
        let queue = self.queues.entry(queue).or_insert_with(|| Queue {
            device,
            work: VecDeque::new(),
        });
        queue.work.push_back(work);
    }

    pub(crate) fn is_idle(&self, queue: u64) -> bool {
        !self.queues.contains_key(&queue)
    }

    /// Runs a queue to its end, and others as far as it waits for them.
    pub(crate) fn finish(&mut self, queue: u64) {
        while let Step::Ran | Step::Blocked(_) = self.advance(queue) {}
    }

    /// Runs all queues to their ends.
    pub(crate) fn finish_all(&mut self) {
        while let Some(&queue) = self.queues.keys().next() {
            self.finish(queue);
        }
    }

    /// Runs the first piece of work of a queue, or of one that it waits for.
    pub(crate) fn advance(&mut self, queue: u64) -> Step {
        let step = self.step(queue);
        if let Step::Blocked(other) = step {
            self.advance(other);
        }
        step
    }

    fn step(&mut self, key: u64) -> Step {
        let Some(queue) = self.queues.get_mut(&key) else {
            return Step::Empty;
        };
        let device = queue.device;
        match queue.work.front() {
            Some(Work::Wait(mark)) if !mark.is_done.load(Ordering::Relaxed) => {
                return Step::Blocked(mark.queue);
            }
            _ => {}
        }
        let work = queue.work.pop_front();
        if queue.work.is_empty() {
            self.queues.remove(&key);
        }
        if let Some(work) = work {
            self.run(device, work);
        }
        Step::Ran
    }

    /// With a seed: some work of some queues.
    pub(crate) fn run_some(&mut self) {
        let Some(mut random) = self.random.take() else {
            return;
        };
        for _ in 0..random.below(4) {
            if self.queues.is_empty() {
                break;
            }
            let number = random.below(self.queues.len());
            let queue = *self.queues.keys().nth(number).expect("there are more");
            self.step(queue);
        }
        self.random = Some(random);
    }

    fn run(&mut self, device: usize, work: Work) {
        let result = match work {
            Work::Kernel(kernel) => self.run_kernel(device, &kernel),
            Work::Memset(memset) => self.run_memset(device, memset),
            Work::Copy(copy) => self.run_copy(device, copy),
            Work::Host(call) => {
                call.call();
                Ok(())
            }
            Work::Allocate(address) => {
                self.memory.set_state(address, State::Live);
                Ok(())
            }
            Work::Free(address) => {
                let freed = self.memory.free(address);
                freed.map_err(|fault| fault.misuse.unwrap_or_default())
            }
            Work::AllocateInGraph(memory) => {
                self.memory.set_state(memory.0, State::Live);
                Ok(())
            }
            Work::FreeInGraph(memory) => {
                self.memory.set_state(memory.0, State::Reserved);
                Ok(())
            }
            Work::Record(mark) => {
                mark.is_done.store(true, Ordering::Relaxed);
                Ok(())
            }
            Work::Wait(_) => Ok(()),
            Work::Graph(launched) => {
                self.run_graph(device, &launched);
                Ok(())
            }
        };
        if let Err(misuse) = result {
            self.misuses.push(format!("work that ran: {misuse}"));
        }
    }

    /// Runs a graph's nodes in any order that its edges allow.
    fn run_graph(&mut self, device: usize, launched: &Launched) {
        let mut waiting: Vec<usize> = (0..launched.nodes.len()).collect();
        let mut done = vec![false; waiting.len()];
        while !waiting.is_empty() {
            let is_ready = |&node: &usize| launched.nodes[node].1.iter().all(|&other| done[other]);
            let ready: Vec<_> = (0..waiting.len())
                .filter(|&i| is_ready(&waiting[i]))
                .collect();
            let chosen = self.random.as_mut().map_or(0, |r| r.below(ready.len()));
            let node = waiting.remove(ready[chosen]);
            self.run(device, launched.nodes[node].0.clone());
            done[node] = true;
        }
    }

    fn run_kernel(&self, device: usize, kernel: &super::work::Kernel) -> Outcome {
        let Ok(function) = self.functions.get(kernel.function) else {
            return Err("a kernel of a module that is gone".into());
        };
        let launch = kernels::Launch {
            memory: &self.memory,
            device,
            params: &kernel.params,
        };
        let name = function.kernel.name;
        (function.kernel.run)(&launch).map_err(|error| format!("the kernel `{name}`: {error}"))
    }

    fn run_memset(&self, device: usize, memset: Memset) -> Outcome {
        let size = memset.element as usize;
        let to = self.memory.at(device, memset.dst, memset.width * size);
        let to = to.map_err(|error| format!("a memset: {error}"))?;
        for i in 0..memset.width {
            // SAFETY: the range was checked; the value's first bytes are its low ones.
            unsafe {
                let value = (&raw const memset.value).cast::<u8>();
                to.add(i * size).copy_from(value, size);
            }
        }
        Ok(())
    }

    fn run_copy(&self, device: usize, copy: Copy) -> Outcome {
        let place = |side| match side {
            Side::Host(address) => Ok(std::ptr::with_exposed_provenance_mut(address as usize)),
            Side::Device(address) => self.memory.at(device, address, copy.bytes),
        };
        let named = |error| format!("a copy: {error}");
        let from = place(copy.from).map_err(named)?;
        let to = place(copy.to).map_err(named)?;
        // SAFETY: device memory was checked, and host memory is the caller's promise.
        unsafe { to.copy_from(from, copy.bytes) };
        Ok(())
    }

    /// Frees the memory of graphs that are gone.
    pub(crate) fn free_orphans(&mut self) {
        let orphans = std::mem::take(&mut *ORPHANS.lock().expect("nothing panics with it"));
        for address in orphans {
            let _ = self.memory.free(address);
        }
    }

    /// All misuse since the last time.
    pub(crate) fn take_misuses(&mut self) -> Vec<String> {
        let mut misuses = std::mem::take(&mut self.misuses);
        let calls = std::mem::take(&mut *IN_CALLBACKS.lock().expect("nothing panics with it"));
        misuses.extend(calls.iter().map(|name| format!("{name} in a callback")));
        misuses
    }
}

type Outcome = std::result::Result<(), String>;
