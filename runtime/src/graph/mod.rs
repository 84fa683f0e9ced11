//! CUDA graphs of our own: what is decided without a driver.

pub(crate) mod description;
pub(crate) mod key;
