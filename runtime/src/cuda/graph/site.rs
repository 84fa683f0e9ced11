//! The graphs of one call site on one device: capture, update, launch.

use super::raw::{CaptureStream, Executable, Graph};
use super::staged::{CopyNode, Memory};
use crate::cuda::capture::last_node;
use crate::cuda::context::Context;
use crate::cuda::device::{Device, MAX_DEVICES};
use crate::cuda::driver::failed;
use crate::error::{Error, Result};
use crate::graph::cache::{Cache, Miss};
use crate::graph::slot::{Graphs, Slot};
use crate::graph::staging::{SlotCopy, Staging};
use crate::graph::stats::Counters;
use crate::graph::target::{Counted, Target};
use crate::signature::GraphMode;
use cudarc::driver::{result, sys};
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

/// More nodes than this are not made into a graph: instantiation would take seconds.
const MAX_NODES: usize = 1 << 14;

/// The most addresses that a key can have: one for each array of a callable.
const MAX_KEY: usize = 64;

/// The graphs of one call site, for each device.
#[derive(Default)]
pub(crate) struct Slots(OnceLock<Box<[OnceLock<Arc<Slot<SiteGraphs>>>; MAX_DEVICES]>>);

impl std::fmt::Debug for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slots").finish_non_exhaustive()
    }
}

impl Slots {
    /// Makes the graphs of a device, which is current, if they are not there.
    pub(crate) fn prepare(
        &self,
        device: &'static Device,
        target: &Arc<Target>,
        mode: GraphMode,
    ) -> Result<()> {
        let slots = self
            .0
            .get_or_init(|| Box::new([const { OnceLock::new() }; MAX_DEVICES]));
        let slot = &slots[device.ordinal()];
        if slot.get().is_none() {
            let graphs = SiteGraphs::new(device, target, mode)?;
            slot.get_or_init(|| Slot::new(target, graphs));
        }
        Ok(())
    }

    /// The graphs of a device that was prepared.
    pub(crate) fn on(&self, ordinal: usize) -> Result<&Slot<SiteGraphs>> {
        let slot = self.0.get().and_then(|slots| slots[ordinal].get());
        slot.map(|slot| &**slot).ok_or_else(|| {
            Error::internal("XLA called EXECUTE on a device without INITIALIZE before")
        })
    }
}

/// The graphs of one call site on one device.
pub(crate) struct SiteGraphs {
    device: &'static Device,
    target: Arc<Target>,
    mode: GraphMode,
    cache: Cache<Captured>,
    /// What is staged, known from the first call on.
    staging: Option<Staging>,
    memory: Option<Counted<Memory>>,
    /// Set when the body has captured too much.
    ungraphed: bool,
    // Last, for the others are freed on it.
    stream: CaptureStream,
}

/// An executable graph, and its copies whose addresses are set before each launch.
pub(crate) struct Captured {
    executable: Executable,
    copies: Vec<CopyNode>,
    /// What the copies' nodes are in.
    _graph: Option<Graph>,
}

/// How a call's body runs: with its work on the context's stream, and its buffers, numbered
/// operands first, at these addresses.
pub(crate) type Body<'a> = dyn FnMut(&Context, &[u64]) -> Result<()> + 'a;

impl SiteGraphs {
    fn new(device: &'static Device, target: &Arc<Target>, mode: GraphMode) -> Result<SiteGraphs> {
        Ok(SiteGraphs {
            device,
            target: Arc::clone(target),
            mode,
            cache: Cache::default(),
            staging: None,
            memory: None,
            ungraphed: false,
            stream: CaptureStream::new()?,
        })
    }

    /// Runs a call by a graph. False if there is none, and nothing ran: it would be too large.
    ///
    /// # Safety
    /// The device is current, `stream` is a stream of its primary context, not being captured,
    /// on which the buffers at `addresses` are valid; they are of the call site's sizes, and
    /// `plan` tells them always the same.
    pub(crate) unsafe fn call(
        &mut self,
        stream: *mut c_void,
        addresses: &[u64],
        plan: impl FnOnce() -> Result<Staging>,
        body: &mut Body<'_>,
    ) -> Result<bool> {
        if self.ungraphed {
            return Ok(false);
        }
        let stream: sys::CUstream = stream.cast();
        let staging = match self.staging.take() {
            Some(staging) => staging,
            None => plan()?,
        };
        // SAFETY: the caller's promise.
        let result = unsafe { self.call_staged(stream, addresses, &staging, body) };
        self.staging = Some(staging);
        result
    }

    /// # Safety
    /// As for `call`.
    unsafe fn call_staged(
        &mut self,
        stream: sys::CUstream,
        addresses: &[u64],
        staging: &Staging,
        body: &mut Body<'_>,
    ) -> Result<bool> {
        for &(from, to, bytes) in &staging.moves {
            if addresses[from] != addresses[to] {
                // SAFETY: the buffers have this size.
                unsafe { copy(addresses[from], addresses[to], bytes, stream)? };
            }
        }
        let mut key = [0; MAX_KEY];
        let mut len = 0;
        for (place, address) in key.iter_mut().zip(staging.key(addresses)) {
            *place = address;
            len += 1;
        }
        let key = &key[..len];

        let memory = self.memory(staging)?;
        if let Some(memory) = memory {
            // SAFETY: the stream is alive; its work on staging memory comes after this.
            unsafe { self.used()?.wait(stream)? };
            if self.mode == GraphMode::WarpStagedEx {
                for SlotCopy {
                    buffer,
                    offset,
                    bytes,
                } in &staging.before
                {
                    // SAFETY: the slot has the size of the buffer.
                    unsafe { copy(addresses[*buffer], memory + offset, *bytes, stream)? };
                }
            }
        }

        let stamp = self.target.stamp();
        let context = self.device.context().cu_ctx();
        if let Some(captured) = self.cache.hit(key, stamp) {
            self.target.counters.hits.add(1);
            captured.launch(stream, context, addresses)?;
        } else if !self.miss(stream, addresses, key, stamp, staging, memory, body)? {
            self.ungraphed = true;
            return Ok(false);
        }
        self.target.counters.launches.add(1);

        if let Some(memory) = memory {
            if self.mode == GraphMode::WarpStagedEx {
                for SlotCopy {
                    buffer,
                    offset,
                    bytes,
                } in &staging.after
                {
                    // SAFETY: as before the launch.
                    unsafe { copy(memory + offset, addresses[*buffer], *bytes, stream)? };
                }
            }
            // SAFETY: the stream is alive.
            unsafe { self.used()?.record(stream)? };
        }
        Ok(true)
    }

    /// The target's counts.
    pub(crate) fn counters(&self) -> &Counters {
        &self.target.counters
    }

    fn used(&self) -> Result<&super::raw::Event> {
        let memory = self.memory.as_ref();
        memory
            .map(|memory| &memory.used)
            .ok_or_else(|| Error::internal("staging memory is gone"))
    }

    /// The address of the staging memory, if there is any.
    fn memory(&mut self, staging: &Staging) -> Result<Option<u64>> {
        if staging.bytes == 0 {
            return Ok(None);
        }
        if self.memory.is_none() {
            let memory = Memory::new(staging.bytes, &self.stream)?;
            self.memory = Some(self.target.count_staged(staging.bytes, memory));
        }
        Ok(self.memory.as_ref().map(|memory| memory.address))
    }

    #[expect(clippy::too_many_arguments, reason = "all of one call")]
    fn miss(
        &mut self,
        stream: sys::CUstream,
        addresses: &[u64],
        key: &[u64],
        stamp: u64,
        staging: &Staging,
        memory: Option<u64>,
        body: &mut Body<'_>,
    ) -> Result<bool> {
        let context = self.device.context().cu_ctx();
        let seen = staging.seen(key, memory.unwrap_or(0), addresses.len());
        let captured = self.capture(addresses, &seen, staging, memory, body)?;
        let Some((graph, copies)) = captured else {
            return Ok(false);
        };
        let target = Arc::clone(&self.target);
        let limit = target.limit();
        let make = |graph: Graph, copies| {
            target.counters.instantiations.add(1);
            Captured::new(graph, copies)
        };
        let mut captured = match self.cache.miss(key, limit, || target.has_room()) {
            Miss::Once => {
                make(graph, copies)?.launch(stream, context, addresses)?;
                return Ok(true);
            }
            Miss::Instantiate => target.count(make(graph, copies)?),
            Miss::Update(mut captured) => {
                if captured.executable.update(&graph)? {
                    target.counters.updates.add(1);
                    captured.replace(graph, copies);
                    captured
                } else {
                    drop(captured);
                    target.count(make(graph, copies)?)
                }
            }
        };
        captured.launch(stream, context, addresses)?;
        self.cache.insert(key, stamp, captured);
        Ok(true)
    }

    /// Captures the body, and in mode WarpStaged the copies around it. None if the graph is
    /// too large.
    fn capture(
        &mut self,
        addresses: &[u64],
        seen: &[u64],
        staging: &Staging,
        memory: Option<u64>,
        body: &mut Body<'_>,
    ) -> Result<Option<(Graph, Vec<CopyNode>)>> {
        self.target.counters.captures.add(1);
        let memory = memory.filter(|_| self.mode == GraphMode::WarpStaged);
        let stream = self.stream.raw();
        // SAFETY: the stream is of this device's primary context, and outlives the capture.
        let context = unsafe { self.device.on_stream(stream.cast()) };
        let mut copies = Vec::new();
        let mut num_nodes = 0;
        let graph = self.stream.capture(|| {
            let mut copy_node = |from, to, bytes, buffer, is_source| -> Result<()> {
                // SAFETY: the slot has the size of the buffer; the node is this copy.
                unsafe {
                    copy(from, to, bytes, stream)?;
                    copies.push(CopyNode::new(last_node(stream)?, buffer, is_source)?);
                }
                Ok(())
            };
            if let Some(memory) = memory {
                for SlotCopy {
                    buffer,
                    offset,
                    bytes,
                } in &staging.before
                {
                    copy_node(addresses[*buffer], memory + offset, *bytes, *buffer, true)?;
                }
            }
            let capture = context
                .capture()?
                .ok_or_else(|| Error::internal("a stream that captures says that it does not"))?;
            body(&context, seen)?;
            context.check_capture(&capture)?;
            if let Some(memory) = memory {
                for SlotCopy {
                    buffer,
                    offset,
                    bytes,
                } in &staging.after
                {
                    copy_node(memory + offset, addresses[*buffer], *bytes, *buffer, false)?;
                }
            }
            num_nodes = capture.len()?;
            Ok(())
        });
        let graph = graph.map_err(|error| {
            Error::new(
                error.code(),
                format!(
                    "{error} (while the call was captured into a CUDA graph; a body that must \
                     wait or load there needs graph_mode = None)"
                ),
            )
        })?;
        Ok((num_nodes <= MAX_NODES).then_some((graph, copies)))
    }
}

/// # Safety
/// Both are addresses of device memory of this size, valid for the stream's work.
unsafe fn copy(from: u64, to: u64, bytes: u64, stream: sys::CUstream) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { result::memcpy_dtod_async(to, from, bytes as usize, stream) }
        .map_err(|error| failed("cannot copy an array", error))
}

impl Captured {
    fn new(graph: Graph, copies: Vec<CopyNode>) -> Result<Captured> {
        let executable = graph.instantiate()?;
        let _graph = (!copies.is_empty()).then_some(graph);
        Ok(Captured {
            executable,
            copies,
            _graph,
        })
    }

    /// Takes over the copies of the graph that the executable was updated from. The nodes
    /// of the graph that it was made from stay those by which it is addressed.
    fn replace(&mut self, graph: Graph, copies: Vec<CopyNode>) {
        for (own, new) in self.copies.iter_mut().zip(copies) {
            own.take_params(new);
        }
        drop(graph);
    }

    fn launch(
        &mut self,
        stream: sys::CUstream,
        context: sys::CUcontext,
        addresses: &[u64],
    ) -> Result<()> {
        for copy in &mut self.copies {
            copy.follow(self.executable.raw(), context, addresses)?;
        }
        // SAFETY: the stream is alive, and the addresses in the graph are those of the call.
        unsafe { self.executable.launch(stream) }
    }
}

impl Graphs for SiteGraphs {
    fn oldest(&self) -> Option<u64> {
        self.cache.oldest()
    }

    fn evict_oldest(&mut self) {
        let evicted = self.cache.take_oldest();
        self.device.with_context(|| drop(evicted));
    }

    fn clear(&mut self) -> usize {
        let executables = self.cache.take_all();
        let count = executables.len();
        let memory = self.memory.take();
        self.device.with_context(|| {
            drop(executables);
            if let Some(memory) = memory {
                memory.free(&self.stream);
            }
        });
        count
    }
}

impl Drop for SiteGraphs {
    fn drop(&mut self) {
        self.clear();
    }
}
