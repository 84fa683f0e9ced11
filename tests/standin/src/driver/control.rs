//! The tests' side: what is alive, what was misused, what is to fail.

use super::call::{Effect, call};
use super::fault;
use super::memory::State;
use super::random::Random;
use super::work::USER_OBJECTS;
use super::world::{context, world};
use crate::Live;
use cudarc::driver::sys::CUresult;
use std::sync::atomic::Ordering;

/// What is alive.
#[unsafe(no_mangle)]
extern "C" fn standin_live(live: &mut Live) {
    let world = world();
    *live = Live {
        streams: world.streams.len(),
        events: world.events.len(),
        allocations: world.memory.len(),
        graphs: world.graphs.len(),
        executables: world.executables.len(),
        objects: USER_OBJECTS.load(Ordering::Relaxed),
        modules: world.modules.len(),
        captures: world.captures.len(),
    };
}

/// Runs all work that there is.
#[unsafe(no_mangle)]
extern "C" fn standin_finish() {
    let mut world = world();
    world.finish_all();
    world.free_orphans();
}

/// Writes as much as there is room for of what was misused since the last time, and returns how
/// many bytes all of it has.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_misuses(to: *mut u8, room: usize) -> usize {
    let text = world().take_misuses().join("\n");
    // SAFETY: the caller has the room.
    unsafe { to.copy_from(text.as_ptr(), text.len().min(room)) };
    text.len()
}

/// From now on, work runs at moments that follow from the seed; with 0, when it is waited for.
#[unsafe(no_mangle)]
extern "C" fn standin_seed(seed: u64) {
    world().random = (seed != 0).then(|| Random::new(seed));
}

/// Whether a captured graph gets the handle of the one that was destroyed last, as a driver's may.
#[unsafe(no_mangle)]
extern "C" fn standin_reuse_graphs(reuses: bool) {
    let mut world = world();
    world.reuses_graphs = reuses;
    world.spare_graph = None;
}

/// Whether functions seem to have no parameters, as those do that a driver knows too little of.
#[unsafe(no_mangle)]
extern "C" fn standin_hide_params(hides: bool) {
    world().hides_params = hides;
}

/// Lets the call of this number fail, counted from 0 and from now, with a code; with
/// `u64::MAX`, none.
#[unsafe(no_mangle)]
extern "C" fn standin_arm(at: u64, code: u32) {
    let code = match code {
        1 => CUresult::CUDA_ERROR_INVALID_VALUE,
        2 => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
        719 => CUresult::CUDA_ERROR_LAUNCH_FAILED,
        801 => CUresult::CUDA_ERROR_NOT_SUPPORTED,
        _ => CUresult::CUDA_ERROR_UNKNOWN,
    };
    world().faults.arm((at != u64::MAX).then_some((at, code)));
}

/// Lets one call in so many fail, chosen by the seed.
#[unsafe(no_mangle)]
extern "C" fn standin_arm_random(seed: u64, one_in: usize) {
    world().faults.arm_random(seed, one_in);
}

/// How many calls were made since the last arming.
#[unsafe(no_mangle)]
extern "C" fn standin_calls() -> u64 {
    world().faults.count
}

/// How many of them were of the function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_calls_of(name: *const u8, len: usize) -> u64 {
    // SAFETY: the caller's text has this length.
    let name = unsafe { std::slice::from_raw_parts(name, len) };
    let name = std::str::from_utf8(name).unwrap_or_default();
    world().faults.counts.get(name).copied().unwrap_or(0)
}

/// How many calls failed since the last arming, and in `to` the name of the last of them, with a
/// NUL behind it.
#[unsafe(no_mangle)]
extern "C" fn standin_failures(to: &mut [u8; 64]) -> u64 {
    let faults = &world().faults;
    *to = [0; 64];
    to[..faults.failed.len()].copy_from_slice(faults.failed.as_bytes());
    faults.failures
}

/// This thread's calls are neither counted nor fail.
#[unsafe(no_mangle)]
extern "C" fn standin_exempt(is_exempt: bool) {
    fault::set_exempt(is_exempt);
}

/// Opens a device as XLA does: retains its primary context, and makes a stream that nobody else may
/// capture.
#[unsafe(no_mangle)]
extern "C" fn standin_open(device: usize) -> u64 {
    let mut world = world();
    world.is_initialised = true;
    world.contexts[device] += 1;
    let stream = world.create_stream(device);
    if let Ok(stream) = world.streams.get_mut(stream) {
        stream.is_foreign = true;
    }
    stream
}

/// Ends a stream that was opened.
#[unsafe(no_mangle)]
extern "C" fn standin_close(stream: u64) {
    let mut world = world();
    world.finish(stream);
    let _ = world.streams.remove(stream);
}

/// Allocates device memory.
#[unsafe(no_mangle)]
extern "C" fn standin_allocate(device: usize, bytes: usize) -> u64 {
    world()
        .memory
        .allocate(device, bytes, State::Live)
        .unwrap_or(0)
}

/// Frees it.
#[unsafe(no_mangle)]
extern "C" fn standin_free(address: u64) {
    call("standin_free", Effect::Done, |world| {
        world.memory.free(address)
    });
}

/// Runs a stream to its end.
#[unsafe(no_mangle)]
extern "C" fn standin_wait(stream: u64) {
    world().finish(stream);
}

/// The handle of a device's primary context.
#[unsafe(no_mangle)]
extern "C" fn standin_context(device: usize) -> u64 {
    context(device)
}

/// How often a device's primary context is retained.
#[unsafe(no_mangle)]
extern "C" fn standin_retained(device: usize) -> u64 {
    world().contexts[device]
}
