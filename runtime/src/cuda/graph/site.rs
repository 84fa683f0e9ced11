//! The graphs of one call site on one device: capture, update, launch.

use super::captured::{Captured, OneCall};
use super::copies::{copy, copy_all};
use super::raw::{CaptureStream, Graph};
use super::staged::{CopyNode, Memory};
use crate::cuda::capture::last_node;
use crate::cuda::context::Context;
use crate::cuda::device::Device;
use crate::error::{Error, Result};
use crate::graph::cache::{Cache, Miss};
use crate::graph::patches::Patches;
use crate::graph::slot::Graphs;
use crate::graph::staging::{SlotCopy, Staging};
use crate::graph::stats::Counters;
use crate::graph::target::{Counted, Target};
use crate::signature::GraphMode;
use std::ffi::c_void;
use std::sync::Arc;

/// More nodes than this are not made into a graph: instantiation would take seconds.
const MAX_NODES: usize = 1 << 14;

/// The most addresses that a key can have: one for each array of a callable.
const MAX_KEY: usize = 64;

/// The graphs of one call site on one device.
pub(crate) struct SiteGraphs {
    device: &'static Device,
    pub(super) target: Arc<Target>,
    mode: GraphMode,
    cache: Cache<Captured>,
    /// What is staged, known from the first call on.
    staging: Option<Staging>,
    memory: Option<Counted<Memory>>,
    /// Where the graphs hold addresses.
    pub(super) patches: Patches,
    /// Set when the body has captured too much.
    ungraphed: bool,
    // Last, for the others are freed on it.
    stream: CaptureStream,
}

/// How a call's body runs: with its work on the context's stream, and its buffers, numbered
/// operands first, at these addresses.
pub(super) type Body<'a> = dyn FnMut(&Context, &[u64]) -> Result<()> + 'a;

impl SiteGraphs {
    pub(super) fn new(
        device: &'static Device,
        target: &Arc<Target>,
        mode: GraphMode,
    ) -> Result<SiteGraphs> {
        Ok(SiteGraphs {
            device,
            target: Arc::clone(target),
            mode,
            cache: Cache::default(),
            staging: None,
            memory: None,
            patches: Patches::default(),
            ungraphed: false,
            stream: CaptureStream::new(device)?,
        })
    }

    /// Runs a call by a graph. False if there is none, and nothing ran: it would be too large.
    ///
    /// # Safety
    /// `stream` is a stream of the device's primary context, not being captured, on which the
    /// buffers at `addresses` are valid; they are of the call site's sizes, and `plan` tells them
    /// always the same.
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
        let staging = match self.staging.take() {
            Some(staging) => staging,
            None => plan()?,
        };
        let mut key = [0; MAX_KEY];
        let mut len = 0;
        for (place, address) in key.iter_mut().zip(staging.key(addresses)) {
            *place = address;
            len += 1;
        }
        let mut call = OneCall {
            stream: stream.cast(),
            context: self.device.context().cu_ctx(),
            addresses,
            key: &key[..len],
            staging: &staging,
            memory: None,
        };
        // SAFETY: the caller's promise.
        let result = unsafe { self.move_and_launch(&mut call, body) };
        self.staging = Some(staging);
        result
    }

    /// # Safety
    /// As for `call`.
    unsafe fn move_and_launch(
        &mut self,
        call: &mut OneCall<'_>,
        body: &mut Body<'_>,
    ) -> Result<bool> {
        let (stream, staging) = (call.stream, call.staging);
        let moves = staging.moves.iter().filter_map(|&(from, to, bytes)| {
            let (from, to) = (call.addresses[from], call.addresses[to]);
            (from != to).then_some((from, to, bytes))
        });
        let mut moves = moves.peekable();
        // An executable can be launched on any thread: then this may be left out.
        if staging.bytes > 0 || moves.peek().is_some() {
            self.device.make_current()?;
        }
        for each in moves {
            // SAFETY: the buffers have this size.
            unsafe { copy(each, stream)? };
        }
        if staging.bytes == 0 {
            return self.launch(call, body);
        }
        call.memory = Some(self.memory(staging)?);
        // SAFETY: the stream is alive; its work on staging memory comes after this.
        unsafe { self.staging_memory()?.used.wait(stream)? };
        let result = self.launch_staged(call, body);
        // Also after a failure: some of the work may be queued.
        // SAFETY: the stream is alive.
        let marked = unsafe { self.staging_memory()?.mark(stream) };
        result.and_then(|has_run| marked.map(|()| has_run))
    }

    /// Launches the graph of a call, and in mode WarpStagedEx the copies around it.
    fn launch_staged(&mut self, call: &OneCall<'_>, body: &mut Body<'_>) -> Result<bool> {
        let &OneCall {
            stream,
            addresses,
            staging,
            ..
        } = call;
        let Some(memory) = call.memory.filter(|_| self.mode == GraphMode::WarpStagedEx) else {
            return self.launch(call, body);
        };
        let copies = staging.before.iter();
        let copies = copies.map(|c| (addresses[c.buffer], memory + c.offset, c.bytes));
        // SAFETY: the slots have the sizes of the buffers, and do not overlap.
        unsafe { copy_all(copies, stream)? };
        if !self.launch(call, body)? {
            return Ok(false);
        }
        let copies = staging.after.iter();
        let copies = copies.map(|c| (memory + c.offset, addresses[c.buffer], c.bytes));
        // SAFETY: as before the launch; no two results of a call overlap.
        unsafe { copy_all(copies, stream)? };
        Ok(true)
    }

    /// Launches the graph of a call.
    fn launch(&mut self, call: &OneCall<'_>, body: &mut Body<'_>) -> Result<bool> {
        let stamp = self.target.stamp();
        if let Some(captured) = self.cache.hit(call.key, stamp) {
            self.target.counters.hits.add(1);
            captured.launch(call)?;
        } else if !self.miss(call, stamp, body)? {
            self.ungraphed = true;
            return Ok(false);
        }
        self.target.counters.launches.add(1);
        Ok(true)
    }

    /// The target's counts.
    pub(crate) fn counters(&self) -> &Counters {
        &self.target.counters
    }

    fn staging_memory(&self) -> Result<&Memory> {
        let memory = self.memory.as_deref();
        memory.ok_or_else(|| Error::internal("staging memory is gone"))
    }

    /// The address of the staging memory.
    fn memory(&mut self, staging: &Staging) -> Result<u64> {
        if let Some(memory) = &self.memory {
            return Ok(memory.address);
        }
        let memory = Memory::new(staging.bytes, &self.stream)?;
        let address = memory.address;
        self.memory = Some(self.target.count_staged(staging.bytes, memory));
        Ok(address)
    }

    fn miss(&mut self, call: &OneCall<'_>, stamp: u64, body: &mut Body<'_>) -> Result<bool> {
        self.device.make_current()?;
        let target = Arc::clone(&self.target);
        let miss = self
            .cache
            .miss(call.key, target.limit(), || target.has_room());
        let mut captured = match miss {
            Miss::Update(captured) => match self.patch(&captured, call, body)? {
                true => captured,
                false => match self.update(captured, call, body)? {
                    Some(captured) => captured,
                    None => return Ok(false),
                },
            },
            Miss::Once | Miss::Instantiate => {
                let Some((graph, copies)) = self.capture(call, call.key, body)? else {
                    return Ok(false);
                };
                let mut captured = self.instantiate(graph, copies)?;
                if matches!(miss, Miss::Once) {
                    captured.launch(call)?;
                    return Ok(true);
                }
                target.count(captured)
            }
        };
        captured.launch(call)?;
        self.cache.insert(call.key, stamp, captured);
        Ok(true)
    }

    fn instantiate(&self, graph: Graph, copies: Vec<CopyNode>) -> Result<Captured> {
        self.target.counters.instantiations.add(1);
        Captured::new(graph, copies)
    }

    /// Captures a call and updates an executable from that, or makes another. None if the
    /// graph is too large.
    fn update(
        &mut self,
        mut captured: Counted<Captured>,
        call: &OneCall<'_>,
        body: &mut Body<'_>,
    ) -> Result<Option<Counted<Captured>>> {
        let Some((graph, copies)) = self.capture(call, call.key, body)? else {
            return Ok(None);
        };
        if !captured.executable.update(&graph)? {
            drop(captured);
            let captured = self.instantiate(graph, copies)?;
            return Ok(Some(self.target.count(captured)));
        }
        self.target.counters.updates.add(1);
        captured.recipe = None;
        if self.patches.find(call.key).is_some() || self.patches.wants_more() {
            // Without it, the next call with other addresses is captured again.
            captured.recipe = self
                .learn(&captured, &graph, &copies, call, body)
                .ok()
                .flatten();
        }
        captured.replace(graph, copies);
        Ok(Some(captured))
    }

    /// Captures the body, and in mode WarpStaged the copies around it. None if the graph is
    /// too large.
    pub(super) fn capture(
        &mut self,
        call: &OneCall<'_>,
        key: &[u64],
        body: &mut Body<'_>,
    ) -> Result<Option<(Graph, Vec<CopyNode>)>> {
        self.target.counters.captures.add(1);
        let OneCall {
            staging,
            addresses,
            memory,
            ..
        } = *call;
        let seen = staging.seen(key, memory.unwrap_or(0), addresses.len());
        let memory = memory.filter(|_| self.mode == GraphMode::WarpStaged);
        let stream = self.stream.raw();
        // SAFETY: the stream is of this device's primary context, and outlives the capture.
        let context = unsafe { self.device.on_stream(stream.cast()) };
        let mut copies = Vec::new();
        let mut num_nodes = 0;
        let graph = self.stream.capture(|| {
            let mut copy_node = |from, to, bytes, buffer, is_source| {
                // SAFETY: the slot has the size of the buffer; the node is this copy.
                unsafe {
                    copy((from, to, bytes), stream)?;
                    copies.push(CopyNode::new(last_node(stream)?, bytes, buffer, is_source)?);
                }
                Ok::<_, Error>(())
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
            body(&context, &seen)?;
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
        // Its address is in what was learnt.
        self.patches = Patches::default();
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
