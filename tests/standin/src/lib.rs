//! A stand-in for `libcuda`, for tests on machines without a GPU.
//!
//! Devices have host memory, kernels are functions in `driver::kernels`, and streams are queues
//! that run when somebody waits for them, or, with a seed, at random moments: work is truly in
//! flight, and every order that the driver's rules allow may happen. What a real driver answers
//! with undefined behaviour is written down as a misuse: memory that is used after it was freed or
//! out of its bounds, handles that are gone, another context than the current one, captures
//! and graphs on foreign streams. Any call can be made to fail.
//!
//! The cdylib is the library that is tested against; [`Driver`] loads it and controls it.

mod client;
mod driver;

pub use client::{Driver, Live};
