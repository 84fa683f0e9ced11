//! Captures and their rules.

use super::Result;
use super::graph::Graph;
use super::stream::StreamCapture;
use super::world::World;
use cudarc::driver::sys::CUresult;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::thread::ThreadId;

/// How a thread or a capture treats calls that are not captured and may be unsafe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Global,
    ThreadLocal,
    Relaxed,
}

impl Mode {
    pub(crate) fn of(number: u32) -> Result<Mode> {
        match number {
            0 => Ok(Mode::Global),
            1 => Ok(Mode::ThreadLocal),
            2 => Ok(Mode::Relaxed),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE.into()),
        }
    }
}

thread_local! {
    pub(crate) static MODE: Cell<Mode> = const { Cell::new(Mode::Global) };
}

/// A capture under way.
pub(crate) struct Capture {
    pub(crate) graph: u64,
    mode: Mode,
    thread: ThreadId,
    /// Where it was begun.
    origin: u64,
    pub(crate) is_broken: bool,
}

impl World {
    pub(crate) fn begin_capture(&mut self, stream: u64, mode: Mode) -> Result {
        let state = self.streams.get(stream)?;
        let device = state.device;
        if state.capture.is_some() {
            return Err(CUresult::CUDA_ERROR_ILLEGAL_STATE.into());
        }
        if state.is_foreign {
            self.misuses
                .push("a capture is begun on a foreign stream".into());
        }
        self.expect_current(device, "a capture on a stream")?;
        let (id, spare) = (self.handle(), self.spare_graph.take());
        let graph = spare.unwrap_or_else(|| self.handle());
        self.graphs.insert(graph, Graph::new(device));
        let capture = Capture {
            graph,
            mode,
            thread: std::thread::current().id(),
            origin: stream,
            is_broken: false,
        };
        self.captures.insert(id, capture);
        self.streams.get_mut(stream)?.capture = Some(StreamCapture {
            id,
            ends: Vec::new(),
        });
        Ok(())
    }

    /// Ends a capture: its graph.
    pub(crate) fn end_capture(&mut self, stream: u64) -> Result<u64> {
        let capture = self.streams.get(stream)?.capture.clone();
        let capture = capture.ok_or(CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
        let state = self.captures.get(capture.id)?;
        if state.origin != stream {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED.into());
        }
        if state.mode != Mode::Relaxed && state.thread != std::thread::current().id() {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD.into());
        }
        let (graph, is_broken) = (state.graph, state.is_broken);
        let joined = self.ancestors(&capture.ends)?;
        let mut is_joined = true;
        for stream in self.streams_of(capture.id) {
            let stream = self.streams.get_mut(stream)?;
            if let Some(part) = stream.capture.take() {
                is_joined &= part.ends.iter().all(|node| joined.contains(node));
            }
        }
        self.captures.remove(capture.id)?;
        let refused = match (is_broken, is_joined) {
            (false, true) => return Ok(graph),
            (true, _) => CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            (false, false) => CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
        };
        self.destroy_graph(graph)?;
        Err(refused.into())
    }

    /// Breaks a capture: all that is left to do is to end it.
    pub(crate) fn invalidate(&mut self, id: u64) {
        if let Ok(capture) = self.captures.get_mut(id) {
            capture.is_broken = true;
        }
    }

    /// The graph of a capture, unless it is broken.
    pub(crate) fn active_graph(&self, id: u64) -> Result<u64> {
        let capture = self.captures.get(id)?;
        match capture.is_broken {
            true => Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED.into()),
            false => Ok(capture.graph),
        }
    }

    /// Makes a stream wait for an event that was recorded in a capture.
    pub(crate) fn join(
        &mut self,
        stream: u64,
        recorded: StreamCapture,
        capture: Option<StreamCapture>,
    ) -> Result {
        if !self.captures.contains(recorded.id) {
            return Err(CUresult::CUDA_ERROR_CAPTURED_EVENT.into());
        }
        let joined = match capture {
            None => recorded,
            Some(mut own) if own.id == recorded.id => {
                let new = recorded.ends.into_iter();
                let new: Vec<_> = new.filter(|node| !own.ends.contains(node)).collect();
                own.ends.extend(new);
                own
            }
            Some(own) => {
                self.invalidate(own.id);
                self.invalidate(recorded.id);
                return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE.into());
            }
        };
        self.streams.get_mut(stream)?.capture = Some(joined);
        Ok(())
    }

    /// Refuses a call that may be unsafe, and breaks the captures that forbid it.
    pub(crate) fn unless_restricted(&mut self) -> Result {
        let (mode, thread) = (MODE.get(), std::thread::current().id());
        if mode == Mode::Relaxed {
            return Ok(());
        }
        let forbids = |capture: &Capture| match capture.mode {
            Mode::Relaxed => false,
            Mode::ThreadLocal => capture.thread == thread,
            Mode::Global => capture.thread == thread || mode == Mode::Global,
        };
        let captures = self.captures.iter();
        let broken: Vec<_> = captures
            .filter(|(_, capture)| forbids(capture))
            .map(|(id, _)| id)
            .collect();
        if broken.is_empty() {
            return Ok(());
        }
        broken.into_iter().for_each(|id| self.invalidate(id));
        Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.into())
    }

    fn streams_of(&self, id: u64) -> Vec<u64> {
        let streams = self.streams.iter();
        streams
            .filter(|(_, stream)| stream.capture.as_ref().is_some_and(|part| part.id == id))
            .map(|(handle, _)| handle)
            .collect()
    }

    /// These nodes, and all that come before them.
    fn ancestors(&self, nodes: &[u64]) -> Result<BTreeSet<u64>> {
        let mut found = BTreeSet::new();
        let mut open = nodes.to_vec();
        while let Some(node) = open.pop() {
            if found.insert(node) {
                open.extend(&self.nodes.get(node)?.after);
            }
        }
        Ok(found)
    }
}
