//! Whole parts against plain models, on random input and from several threads.

mod cache;
mod staging;
mod threads;
