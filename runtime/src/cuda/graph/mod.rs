//! CUDA graphs of our own: what the driver does for `crate::graph`, which decides.

mod raw;
mod site;
mod staged;
mod targets;

pub(crate) use site::Slots;
pub(crate) use targets::target_of;
