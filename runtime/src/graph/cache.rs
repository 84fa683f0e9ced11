//! The executable graphs of one call site on one device.
//!
//! New addresses do not need a new executable: the one that was not used for longest is
//! updated. Only a program that comes back to addresses which were replaced a short while
//! ago, and so goes around among a few sets of them, gets one executable for each set.

use super::target::Counted;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many replaced address sets are remembered: programs that go around among more of
/// them have their executables updated at every call.
const REMEMBERED: usize = 64;

/// Executables by the addresses that their nodes hold.
pub(crate) struct Cache<E> {
    entries: Vec<Entry<E>>,
    /// The hashes of address sets that were replaced or evicted, the latest last, each once. They lie
    /// side by side: a call whose buffers move looks at all of them.
    replaced: VecDeque<u64>,
}

struct Entry<E> {
    addresses: Box<[u64]>,
    stamp: u64,
    executable: Counted<E>,
}

/// What to do for addresses that no executable has.
pub(crate) enum Miss<E> {
    /// Instantiate, launch, and keep nothing.
    Once,
    /// Instantiate, launch, insert.
    Instantiate,
    /// Update this executable, launch, insert. It is no longer in the cache: dropped after
    /// a failure, it cannot be found with nodes that were half updated.
    Update(Counted<E>),
}

impl<E> Default for Cache<E> {
    fn default() -> Cache<E> {
        Cache {
            entries: Vec::new(),
            replaced: VecDeque::new(),
        }
    }
}

impl<E> Cache<E> {
    /// The executable that has exactly these addresses, used at this moment.
    pub(crate) fn hit(&mut self, addresses: &[u64], stamp: u64) -> Option<&mut E> {
        let mut entries = self.entries.iter_mut();
        let entry = entries.find(|entry| *entry.addresses == *addresses)?;
        entry.stamp = stamp;
        Some(&mut entry.executable)
    }

    /// What to do after no [`hit`](Self::hit), with the target's limit, and whether it has
    /// room for one more.
    pub(crate) fn miss(
        &mut self,
        addresses: &[u64],
        limit: Option<u64>,
        has_room: impl FnOnce() -> bool,
    ) -> Miss<E> {
        if limit == Some(0) {
            return Miss::Once;
        }
        // Of two sets with one hash, one is taken for the other: that costs an executable.
        let comes_back = || self.replaced.contains(&hash(addresses));
        if comes_back() && has_room() {
            return Miss::Instantiate;
        }
        match self.take_oldest() {
            Some(executable) => Miss::Update(executable),
            None => Miss::Instantiate,
        }
    }

    /// Keeps an executable that has these addresses and was used at this moment.
    pub(crate) fn insert(&mut self, addresses: &[u64], stamp: u64, executable: Counted<E>) {
        debug_assert!(self.entries.iter().all(|e| *e.addresses != *addresses));
        let hash = hash(addresses);
        self.replaced.retain(|&seen| seen != hash);
        self.entries.push(Entry {
            addresses: addresses.into(),
            stamp,
            executable,
        });
    }

    /// The stamp of the executable that was not used for longest.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.entries.iter().map(|entry| entry.stamp).min()
    }

    /// Takes that executable out.
    pub(crate) fn take_oldest(&mut self) -> Option<Counted<E>> {
        let entries = self.entries.iter().enumerate();
        let (oldest, _) = entries.min_by_key(|(_, entry)| entry.stamp)?;
        let entry = self.entries.swap_remove(oldest);
        if self.replaced.len() == REMEMBERED {
            self.replaced.pop_front();
        }
        self.replaced.push_back(hash(&entry.addresses));
        Some(entry.executable)
    }

    /// Takes all executables out, and forgets what was replaced.
    pub(crate) fn take_all(&mut self) -> Vec<Counted<E>> {
        self.replaced.clear();
        let entries = self.entries.drain(..);
        entries.map(|entry| entry.executable).collect()
    }

    /// How many executables there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

fn hash(addresses: &[u64]) -> u64 {
    let mut hasher = DefaultHasher::new();
    addresses.hash(&mut hasher);
    hasher.finish()
}
