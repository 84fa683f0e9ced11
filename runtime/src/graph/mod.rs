//! CUDA graphs of our own: what is decided without a driver.

pub(crate) mod cache;
pub(crate) mod description;
pub(crate) mod key;
pub(crate) mod learn;
pub(crate) mod patches;
pub(crate) mod random;
pub(crate) mod slot;
pub(crate) mod staging;
pub(crate) mod stats;
pub(crate) mod synthetic;
pub(crate) mod target;

#[cfg(test)]
mod tests;
