//! The graphs of one call site on one device, behind their lock.

use super::target::{Site, Target};
use crate::sync::{AtomicBool, AtomicU64, TryMutex, TryMutexGuard, fence};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, TryLockError};

/// What is behind the lock.
pub(crate) trait Graphs: Send {
    /// The stamp of the executable that was not used for longest, if there is one.
    fn oldest(&self) -> Option<u64>;

    /// Destroys that executable.
    fn evict_oldest(&mut self);

    /// Destroys all executables, and frees what goes with them; returns how many they were.
    fn clear(&mut self) -> usize;
}

/// The stamp of no executable.
const NONE: u64 = u64::MAX;

/// The graphs of one (call site, device), which one call uses at a time.
pub(crate) struct Slot<G> {
    target: Arc<Target>,
    graphs: TryMutex<G>,
    /// `graphs.oldest()` as it was when the lock was last released; ordered by the fences.
    oldest: AtomicU64,
    /// Set by who wants it cleared, until somebody did.
    to_clear: AtomicBool,
}

impl<G: Graphs + 'static> Slot<G> {
    /// A slot that its target knows.
    pub(crate) fn new(target: &Arc<Target>, graphs: G) -> Arc<Slot<G>> {
        let slot = Arc::new(Slot {
            target: Arc::clone(target),
            oldest: AtomicU64::new(graphs.oldest().unwrap_or(NONE)),
            graphs: TryMutex::new(graphs),
            to_clear: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&slot);
        target.add(weak);
        slot
    }
}

impl<G: Graphs> Slot<G> {
    /// Waits for the graphs. When the turn is dropped, the target's limit is enforced.
    pub(crate) fn lock(&self) -> Turn<'_, G> {
        let graphs = self.graphs.lock().unwrap_or_else(PoisonError::into_inner);
        Turn {
            slot: self,
            graphs: Some(graphs),
        }
    }

    fn try_lock(&self) -> Option<TryMutexGuard<'_, G>> {
        match self.graphs.try_lock() {
            Ok(graphs) => Some(graphs),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn release(&self, graphs: TryMutexGuard<'_, G>) {
        let oldest = graphs.oldest().unwrap_or(NONE);
        self.oldest.store(oldest, Ordering::Relaxed);
        drop(graphs);
        // Who found the lock taken has said before what he wanted, a clear or less than the target
        // has: it is seen from here on. Who comes later finds the lock free, and `oldest` as it is.
        fence(Ordering::SeqCst);
        self.clear_if_wanted();
    }

    fn clear_if_wanted(&self) {
        while self.to_clear.load(Ordering::SeqCst) {
            let Some(mut graphs) = self.try_lock() else {
                // Its holder comes here.
                return;
            };
            if self.to_clear.swap(false, Ordering::SeqCst) {
                let evicted = graphs.clear();
                self.target.counters.evictions.add(evicted as u64);
            }
            let oldest = graphs.oldest().unwrap_or(NONE);
            self.oldest.store(oldest, Ordering::Relaxed);
            drop(graphs);
            fence(Ordering::SeqCst);
        }
    }
}

impl<G: Graphs> Site for Slot<G> {
    fn oldest(&self) -> Option<u64> {
        let oldest = self.oldest.load(Ordering::Relaxed);
        (oldest != NONE).then_some(oldest)
    }

    fn try_evict(&self, stamp: u64) -> bool {
        let Some(mut graphs) = self.try_lock() else {
            return false;
        };
        if graphs.oldest() == Some(stamp) {
            graphs.evict_oldest();
            self.target.counters.evictions.add(1);
        }
        self.release(graphs);
        true
    }

    fn clear(&self) {
        self.to_clear.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.clear_if_wanted();
    }
}

/// The graphs of a slot, for one call.
pub(crate) struct Turn<'a, G: Graphs> {
    slot: &'a Slot<G>,
    graphs: Option<TryMutexGuard<'a, G>>,
}

impl<G: Graphs> Deref for Turn<'_, G> {
    type Target = G;

    fn deref(&self) -> &G {
        self.graphs.as_deref().expect("held until the turn is over")
    }
}

impl<G: Graphs> DerefMut for Turn<'_, G> {
    fn deref_mut(&mut self) -> &mut G {
        self.graphs
            .as_deref_mut()
            .expect("held until the turn is over")
    }
}

impl<G: Graphs> Drop for Turn<'_, G> {
    fn drop(&mut self) {
        if let Some(graphs) = self.graphs.take() {
            self.slot.release(graphs);
            self.slot.target.enforce_fenced();
        }
    }
}
