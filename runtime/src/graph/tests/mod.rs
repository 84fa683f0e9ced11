//! Whole parts against plain models, on random input and from several threads.

mod bodies;
mod cache;
mod learning;
#[cfg(loom)]
mod loom;
mod staging;
mod threads;
