//! The graphs of one call site on one device: capture, update, launch.

use super::captured::{Around, Captured, OneCall};
use super::raw::Graph;
use super::staged::{CopyNode, Memory, capture_copies};
use super::stream::OwnStream;
use crate::cuda::context::Context;
use crate::cuda::device::Device;
use crate::error::{Error, Result};
use crate::graph::cache::{Cache, Miss};
use crate::graph::patches::Patches;
use crate::graph::slot::Graphs;
use crate::graph::staging::Staging;
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
    /// Copies between that and the buffers, where they are not in the graphs; made with the first call.
    around: Option<Around>,
    /// Where the graphs hold addresses.
    pub(super) patches: Patches,
    /// Set when the body has captured too much.
    ungraphed: bool,
    // Last, for the others are freed on it.
    stream: OwnStream,
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
            around: None,
            patches: Patches::default(),
            ungraphed: false,
            stream: OwnStream::new(device)?,
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
        self.device.make_current()?;
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
        let memory = match staging.bytes {
            0 => Ok(None),
            bytes => self.memory(bytes).map(Some),
        };
        let result = memory.and_then(|memory| {
            let call = OneCall {
                stream: stream.cast(),
                context: self.device.context().cu_ctx(),
                addresses,
                key: &key[..len],
                staging: &staging,
                memory,
            };
            if let (GraphMode::WarpStagedEx, Some(memory), None) = (self.mode, memory, &self.around)
            {
                self.around = Some(Around::new(&call, memory, &mut self.stream)?);
            }
            // SAFETY: the caller's promise.
            unsafe { self.launch(&call, body) }
        });
        self.staging = Some(staging);
        result
    }

    /// Launches the graph of a call.
    ///
    /// # Safety
    /// As for `call`, of whose call this is.
    unsafe fn launch(&mut self, call: &OneCall<'_>, body: &mut Body<'_>) -> Result<bool> {
        let stamp = self.target.stamp();
        let has_run = match self.cache.hit(call.key, stamp) {
            Some(captured) => {
                self.target.counters.hits.add(1);
                // SAFETY: the caller's promise; the key is that of the graph.
                unsafe { call.launch(captured, self.around.as_mut(), &self.stream)? };
                true
            }
            // SAFETY: the caller's promise.
            None => unsafe { self.miss(call, stamp, body)? },
        };
        match has_run {
            true => self.target.counters.launches.add(1),
            false => {
                self.ungraphed = true;
                let evicted = self.clear();
                self.target.counters.evictions.add(evicted as u64);
            }
        }
        Ok(has_run)
    }

    /// The target's counts.
    pub(crate) fn counters(&self) -> &Counters {
        &self.target.counters
    }

    /// The address of the staging memory.
    fn memory(&mut self, bytes: u64) -> Result<u64> {
        if let Some(memory) = &self.memory {
            return Ok(memory.address);
        }
        let memory = Memory::new(bytes, &self.stream)?;
        let address = memory.address;
        self.memory = Some(self.target.count_staged(bytes, memory));
        Ok(address)
    }

    /// # Safety
    /// As for `launch`.
    unsafe fn miss(&mut self, call: &OneCall<'_>, stamp: u64, body: &mut Body<'_>) -> Result<bool> {
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
                    // SAFETY: the caller's promise.
                    unsafe { call.launch(&mut captured, self.around.as_mut(), &self.stream)? };
                    return Ok(true);
                }
                target.count(captured)
            }
        };
        // SAFETY: the caller's promise; this is the call's graph.
        unsafe { call.launch(&mut captured, self.around.as_mut(), &self.stream)? };
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
            // It is given up as those are that the cache has.
            self.target.counters.evictions.add(1);
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
            let learnt = self.learn(&captured, &graph, &copies, call, body);
            if let Some((recipe, nodes)) = learnt.ok().flatten() {
                captured.recipe = self.write_all(&mut captured, &graph, recipe, nodes, call)?;
            }
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
            if let Some(memory) = memory {
                // SAFETY: the stream is being captured; slots and buffers have these sizes.
                copies =
                    unsafe { capture_copies(&staging.before, true, addresses, memory, stream)? };
            }
            let capture = context
                .capture()?
                .ok_or_else(|| Error::internal("a stream that captures says that it does not"))?;
            body(&context, &seen)?;
            context.check_capture(&capture)?;
            if let Some(memory) = memory {
                // SAFETY: as above.
                copies.extend(unsafe {
                    capture_copies(&staging.after, false, addresses, memory, stream)?
                });
            }
            num_nodes = capture.len()?;
            Ok(())
        });
        if context.is_kept() {
            self.stream.keep();
        }
        let graph = graph.map_err(|error| {
            Error::new(
                error.code(),
                format!(
                    "{error} (while the call was captured into a CUDA graph; a body that must \
                     wait or load there needs graph_mode = None)"
                ),
            )
        })?;
        context.check_kept()?;
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
        let (memory, around) = (self.memory.take(), self.around.take());
        // Its address is in what was learnt.
        self.patches = Patches::default();
        self.device.with_context(|| {
            drop((executables, around));
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
