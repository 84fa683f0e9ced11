//! What a body can ask of XLA on the host.

use crate::error::Result;
use crate::ffi::host_call::HostCall;
use std::ops::Range;
use std::sync::Mutex;

/// The running call on the host: its device, its run, and XLA's threads.
///
/// ```
/// use jax_callable::prelude::*;
///
/// #[jax_callable]
/// fn squares(cx: &cpu::Context, x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 1>) {
///     cx.par_chunks_mut(&mut y, 4096, |start, chunk| {
///         for (y, x) in chunk.iter_mut().zip(&x[start..]) {
///             *y = x * x;
///         }
///     });
/// }
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct Context {
    call: HostCall,
}

impl Context {
    pub(crate) fn new(call: HostCall) -> Context {
        Context { call }
    }

    /// XLA's number of the device, which is JAX's `device.id`: its place among the CPU devices,
    /// but for the later processes of `jax.distributed`, whose numbers begin higher.
    ///
    /// # Errors
    /// If XLA does not tell.
    pub fn device_ordinal(&self) -> Result<usize> {
        self.call.device_ordinal()
    }

    /// A number that is the same on all devices of one launch of the program.
    ///
    /// # Errors
    /// If XLA does not tell.
    pub fn run_id(&self) -> Result<i64> {
        self.call.run_id()
    }

    /// The number of threads in XLA's pool, at least 1.
    pub fn num_threads(&self) -> usize {
        self.call.pool().num_threads()
    }

    /// Calls `work` with ranges that together make up `0..len`, each of at most `grain`
    /// indices (the last may be shorter), on this thread and on free threads of XLA's pool.
    /// Returns when all are done.
    ///
    /// This thread takes part, and no free thread is needed: it cannot deadlock, also
    /// when nested or when the pool has one thread. Choose `grain` so that a range takes
    /// at least some ten microseconds.
    ///
    /// # Panics
    /// If `grain` is 0, and if `work` panics: with one of its panics, when no range is running
    /// any more.
    pub fn parallel_for(&self, len: usize, grain: usize, work: impl Fn(Range<usize>) + Sync) {
        assert!(grain > 0, "parallel_for: the grain must be at least 1");
        self.call.pool().run(len.div_ceil(grain), &|piece| {
            let start = piece * grain;
            work(start..len.min(start.saturating_add(grain)));
        });
    }

    /// Splits `data` into chunks of at most `chunk_len` elements and calls `work` with each
    /// chunk's start in `data` and the chunk, as [`Context::parallel_for`] does.
    ///
    /// # Panics
    /// If `chunk_len` is 0, and if `work` panics.
    pub fn par_chunks_mut<T: Send>(
        &self,
        data: &mut [T],
        chunk_len: usize,
        work: impl Fn(usize, &mut [T]) + Sync,
    ) {
        assert!(
            chunk_len > 0,
            "par_chunks_mut: the chunks must not be empty"
        );
        let pieces = data.len().div_ceil(chunk_len);
        // Each chunk is taken once; a lock for each shows the compiler that it is.
        let chunks: Vec<Mutex<Option<&mut [T]>>> = data
            .chunks_mut(chunk_len)
            .map(|chunk| Mutex::new(Some(chunk)))
            .collect();
        self.call.pool().run(pieces, &|piece| {
            let chunk = chunks[piece].lock().ok().and_then(|mut chunk| chunk.take());
            if let Some(chunk) = chunk {
                work(piece * chunk_len, chunk);
            }
        });
    }
}
