//! The graphs of each callable in this process.

use crate::graph::target::Target;
use crate::signature::Callable;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The graphs of a callable.
pub(crate) fn target_of(callable: &'static Callable) -> Arc<Target> {
    static TARGETS: OnceLock<Mutex<HashMap<usize, Arc<Target>>>> = OnceLock::new();
    let targets = TARGETS.get_or_init(Mutex::default);
    let mut targets = targets.lock().unwrap_or_else(PoisonError::into_inner);
    // A callable is a static: its address is its identity.
    let entry = targets.entry(std::ptr::from_ref(callable).addr());
    let target = entry.or_insert_with(|| Arc::new(Target::new(callable.graph_cache_max)));
    Arc::clone(target)
}
