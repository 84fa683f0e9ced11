//! CUDA graphs of our own: what the driver does for `crate::graph`, which decides.

mod captured;
mod copies;
mod describe;
mod patch;
mod raw;
mod site;
mod slots;
mod staged;
mod stream;
mod targets;

pub(crate) use slots::Slots;
pub(crate) use targets::target_of;
