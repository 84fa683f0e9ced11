//! The graphs of each callable in this process.

use crate::graph::target::Target;
use crate::signature::Callable;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The graphs of a callable.
pub(crate) fn target_of(callable: &'static Callable) -> Arc<Target> {
    type Name = (&'static str, &'static str);
    static TARGETS: OnceLock<Mutex<HashMap<Name, Arc<Target>>>> = OnceLock::new();
    let targets = TARGETS.get_or_init(Mutex::default);
    let mut targets = targets.lock().unwrap_or_else(PoisonError::into_inner);
    // The registry refuses a name twice. Addresses would not do: a description is a constant,
    // which may be in memory more than once.
    let entry = targets.entry((callable.crate_name(), callable.name));
    let target = entry.or_insert_with(|| Arc::new(Target::new(callable.graph_cache_max)));
    Arc::clone(target)
}
