//! What the graphs of a target did, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number of events.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, events: u64) {
        self.0.fetch_add(events, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Events since the library was loaded.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[$doc])* pub(crate) $name: Counter,)*
        }

        /// The events of a target, and what it holds now.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Statistics {
            $($(#[$doc])* pub $name: u64,)*
            /// Executable graphs that are kept.
            pub executables: u64,
            /// Bytes of staging memory.
            pub staged_bytes: u64,
        }

        impl Statistics {
            /// All numbers, each with its name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [
                    $((stringify!($name), self.$name),)*
                    ("executables", self.executables),
                    ("staged_bytes", self.staged_bytes),
                ]
                .into_iter()
            }
        }

        impl Counters {
            pub(super) fn snapshot(&self, executables: u64, staged_bytes: u64) -> Statistics {
                Statistics {
                    $($name: self.$name.get(),)*
                    executables,
                    staged_bytes,
                }
            }
        }
    };
}

counters! {
    /// Captures of the body, those with made-up addresses included.
    captures,
    /// Executable graphs made.
    instantiations,
    /// Executable graphs updated from a new capture.
    updates,
    /// Executable graphs updated by writing addresses into their nodes.
    patches,
    /// Launches of executable graphs.
    launches,
    /// Launches of an executable graph as it was.
    hits,
    /// Calls in which the body ran once for each element of a batch.
    looped_batches,
    /// Calls that ran without a graph, though the mode asks for one.
    ungraphed_calls,
    /// Executable graphs given up for the limit, or cleared.
    evictions,
}
