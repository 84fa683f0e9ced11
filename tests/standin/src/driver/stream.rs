//! Streams and events.

use super::graph::Node;
use super::work::{Mark, Work};
use super::world::World;
use super::{Result, misuse};
use cudarc::driver::sys::{CUgraphNode, CUresult};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Stream {
    pub(crate) device: usize,
    /// Somebody else's: nobody but its owner may begin a capture on it.
    pub(crate) is_foreign: bool,
    pub(crate) capture: Option<StreamCapture>,
    /// What was shown of the capture's nodes.
    pub(crate) shown: Vec<CUgraphNode>,
}

/// A stream's part in a capture.
#[derive(Clone)]
pub(crate) struct StreamCapture {
    pub(crate) id: u64,
    /// What its next node waits for.
    pub(crate) ends: Vec<u64>,
}

pub(crate) struct Event {
    pub(crate) device: usize,
    pub(crate) place: Place,
}

/// Where an event was recorded last.
#[derive(Clone)]
pub(crate) enum Place {
    Nowhere,
    Queue(Arc<Mark>),
    Capture(StreamCapture),
}

impl World {
    pub(crate) fn create_stream(&mut self, device: usize) -> u64 {
        let handle = self.handle();
        let stream = Stream {
            device,
            is_foreign: false,
            capture: None,
            shown: Vec::new(),
        };
        self.streams.insert(handle, stream);
        handle
    }

    pub(crate) fn destroy_stream(&mut self, stream: u64) -> Result {
        self.unless_restricted()?;
        let device = self.streams.get(stream)?.device;
        self.prefer_current(device, "the end of a stream")?;
        let capture = self.streams.remove(stream)?.capture;
        match capture.filter(|capture| self.captures.contains(capture.id)) {
            None => Ok(()),
            Some(capture) => {
                self.invalidate(capture.id);
                let what = "a stream is destroyed that is being captured";
                Err(misuse(CUresult::CUDA_ERROR_INVALID_HANDLE, what))
            }
        }
    }

    /// Gives a stream work: to its queue, or to the graph that it is captured into.
    pub(crate) fn enqueue(&mut self, stream: u64, work: Work) -> Result {
        let Stream {
            device, capture, ..
        } = self.streams.get(stream)?;
        let (device, capture) = (*device, capture.clone());
        match work {
            Work::Free(_) | Work::Record(_) | Work::Wait(_) => {
                self.prefer_current(device, "work on a stream")?;
            }
            _ => self.expect_current(device, "work on a stream")?,
        }
        let Some(capture) = capture else {
            self.push(stream, device, work);
            return Ok(());
        };
        let graph = self.active_graph(capture.id)?;
        let node = self.add_node(graph, Node::new(work, capture.ends))?;
        self.streams.get_mut(stream)?.capture = Some(StreamCapture {
            id: capture.id,
            ends: vec![node],
        });
        Ok(())
    }

    /// Waits for a stream.
    pub(crate) fn synchronize(&mut self, stream: u64) -> Result {
        self.refuse_in_capture(stream)?;
        self.unless_restricted()?;
        self.finish(stream);
        Ok(())
    }

    pub(crate) fn query(&mut self, stream: u64) -> Result {
        self.refuse_in_capture(stream)?;
        self.unless_restricted()?;
        match self.is_idle(stream) {
            true => Ok(()),
            false => Err(CUresult::CUDA_ERROR_NOT_READY.into()),
        }
    }

    /// Fails, and breaks the capture, if a stream is in one.
    fn refuse_in_capture(&mut self, stream: u64) -> Result {
        let Some(capture) = self.streams.get(stream)?.capture.clone() else {
            return Ok(());
        };
        self.invalidate(capture.id);
        Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.into())
    }

    pub(crate) fn destroy_event(&mut self, event: u64) -> Result {
        let device = self.events.get(event)?.device;
        self.prefer_current(device, "the end of an event")?;
        self.events.remove(event)?;
        Ok(())
    }

    pub(crate) fn record(&mut self, event: u64, stream: u64) -> Result {
        let device = self.events.get(event)?.device;
        let Stream {
            device: of_stream,
            capture,
            ..
        } = self.streams.get(stream)?;
        if *of_stream != device {
            let what = "an event of another device";
            return Err(misuse(CUresult::CUDA_ERROR_INVALID_HANDLE, what));
        }
        let place = match capture.clone() {
            Some(capture) => {
                self.active_graph(capture.id)?;
                Place::Capture(capture)
            }
            None => {
                let mark = Arc::new(Mark {
                    is_done: AtomicBool::new(false),
                    queue: stream,
                });
                self.enqueue(stream, Work::Record(Arc::clone(&mark)))?;
                Place::Queue(mark)
            }
        };
        self.events.get_mut(event)?.place = place;
        Ok(())
    }

    pub(crate) fn wait(&mut self, stream: u64, event: u64) -> Result {
        let place = self.events.get(event)?.place.clone();
        let capture = self.streams.get(stream)?.capture.clone();
        match (place, capture) {
            (Place::Nowhere, _) => Ok(()),
            (Place::Queue(mark), None) => self.enqueue(stream, Work::Wait(mark)),
            (Place::Queue(_), Some(capture)) => {
                self.invalidate(capture.id);
                Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION.into())
            }
            (Place::Capture(recorded), capture) => self.join(stream, recorded, capture),
        }
    }

    /// Whether an event's mark is passed; an error if it is in a capture.
    pub(crate) fn is_passed(&mut self, event: u64) -> Result<bool> {
        self.unless_restricted()?;
        match &self.events.get(event)?.place {
            Place::Nowhere => Ok(true),
            Place::Queue(mark) => Ok(mark.is_done.load(Ordering::Relaxed)),
            Place::Capture(_) => Err(CUresult::CUDA_ERROR_CAPTURED_EVENT.into()),
        }
    }

    /// Waits for an event.
    pub(crate) fn synchronize_event(&mut self, event: u64) -> Result {
        if !self.is_passed(event)?
            && let Place::Queue(mark) = &self.events.get(event)?.place
        {
            let mark = Arc::clone(mark);
            while !mark.is_done.load(Ordering::Relaxed) {
                self.advance(mark.queue);
            }
        }
        Ok(())
    }
}
