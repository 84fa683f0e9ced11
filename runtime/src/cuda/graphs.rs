//! The graphs of our own that callables keep: how many, how many at most, and what they did.

use super::graph::target_of;
pub use crate::graph::stats::Statistics;
use crate::graph::target::{self, Target};
use crate::registry;
pub use crate::signature::GraphCacheMax;
use crate::signature::Platform;
use std::fmt;
use std::sync::Arc;

/// The graphs that one callable of this library keeps on all devices, in the graph modes `Warp`,
/// `WarpStaged` and `WarpStagedEx`. In other modes there are none, and all numbers stay 0.
///
/// ```
/// use jax_callable::cuda::graphs::Graphs;
///
/// if let Some(graphs) = Graphs::of("ops.saxpy") {
///     println!("{} graphs, {:?}", graphs.len(), graphs.statistics());
///     graphs.clear();
/// }
/// ```
#[derive(Clone)]
pub struct Graphs(Arc<Target>);

impl fmt::Debug for Graphs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Graphs").field(&self.statistics()).finish()
    }
}

impl Graphs {
    /// Those of the callable for CUDA that is named `crate.name`.
    pub fn of(name: &str) -> Option<Graphs> {
        let (krate, name) = name.split_once('.')?;
        let mut callables = registry::library().callables.iter();
        callables
            .find(|callable| {
                callable.platform() == Platform::Cuda
                    && callable.crate_name() == krate
                    && callable.name == name
            })
            .map(|callable| Graphs(target_of(callable)))
    }

    /// Those of a callable, numbered as in the manifest.
    pub(crate) fn at(index: u32) -> Option<Graphs> {
        let callable = registry::library().callables.get(index as usize)?;
        (callable.platform() == Platform::Cuda).then(|| Graphs(target_of(callable)))
    }

    /// How many executable graphs are kept now.
    pub fn len(&self) -> u64 {
        self.0.executables()
    }

    /// Whether none is kept now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many are kept at most, none for no limit: the number that was set, else
    /// `graph_cache_max` of the attribute, else the default.
    pub fn max(&self) -> Option<u64> {
        self.0.limit()
    }

    /// Sets how many are kept at most. Those above it are given up at once, the ones that were
    /// not used for longest first; one in use by another thread follows when it is done. With 0
    /// every call makes a graph of its own.
    pub fn set_max(&self, max: GraphCacheMax) {
        self.0.set_limit(max);
    }

    /// Gives all graphs and staging memory up. What runs on a device is not disturbed.
    pub fn clear(&self) {
        self.0.clear();
    }

    /// What they did since the library was loaded.
    pub fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
}

/// How many graphs a callable keeps at most that says nothing itself; none for no limit. At first
/// 32.
pub fn default_max() -> Option<u64> {
    target::default_limit()
}

/// Sets it, for all callables of this library; each takes note at its next call.
pub fn set_default_max(max: Option<u64>) {
    target::set_default_limit(max);
}
