//! CUDA graphs of our own: what is decided without a driver.
//!
//! In the modes `Warp`, `WarpStaged` and `WarpStagedEx` a call captures its body into a
//! graph once, and launches the executable graph from then on. XLA gives buffers other
//! addresses now and then, and a graph holds addresses: that is what all of this is about.
//!
//! ```text
//! addresses -- staging --> key -- cache --> hit: launch
//!                                       --> update: patches know how --> write addresses, launch
//!                                                   otherwise --> capture, update, learn, launch
//!                                       --> instantiate: capture, instantiate, launch
//! ```
//!
//! | file | what |
//! |---|---|
//! | `staging` | which buffers the body sees in memory of the call site, what is copied, and which addresses are left as the key |
//! | `key` | the pattern of a call: all that a body may look at in addresses, beside being addresses |
//! | `cache` | the executables of one call site on one device, and what to do when none fits |
//! | `slot` | that, and what the driver keeps with it, behind one lock: a call has it for its turn |
//! | `target` | all slots of a callable: limit, stamps, eviction |
//! | `stats` | what they did |
//! | `description` | a captured graph as data |
//! | `synthetic` | made-up addresses to capture with |
//! | `learn` | from such captures: the bytes of a graph's nodes that are addresses, or why not |
//! | `image` | the nodes to be written, as a call needs them |
//! | `patches` | what was learnt for a call site on a device |
//!
//! Three rules keep it sound:
//! - An executable is launched only if the addresses in its nodes are, in full, those of
//!   the call. While it is being changed it is in no cache.
//! - A graph is patched only if captures at made-up addresses, with all that a body may not
//!   depend on changed, and a real one, are what was learnt; and only for calls of the same
//!   pattern. A body that depends on one bit of some hash of its addresses can escape this
//!   about one time in 16: `JAX_CALLABLE_VERIFY_PATCH=1` compares every call.
//! - Locks: a turn's may be held over driver calls; the list of a target's slots is locked
//!   to be read alone. Nobody waits for a turn but the calls of that site on that device:
//!   eviction passes by what is in use, whose user then evicts in its stead.

pub(crate) mod cache;
pub(crate) mod description;
pub(crate) mod image;
pub(crate) mod key;
pub(crate) mod learn;
pub(crate) mod patches;
mod random;
pub(crate) mod slot;
pub(crate) mod staging;
pub(crate) mod stats;
mod synthetic;
pub(crate) mod target;

#[cfg(test)]
mod tests;
