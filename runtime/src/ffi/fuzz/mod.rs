//! Random input for what comes from the host.

pub(crate) mod attributes;
pub(crate) mod frames;
mod functions;
mod model;
