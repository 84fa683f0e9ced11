//! Two bodies that run at the same time.

use jax_callable::prelude::*;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

static ARRIVED: Mutex<u32> = Mutex::new(0);
static MET: Condvar = Condvar::new();

/// y <- x, but not before another thread is in this body as well: where calls wait for each other,
/// they fail.
#[jax_callable(graph_mode = None)]
fn meets(cx: &cuda::Context, x: cuda::Array<f32, 1>, mut y: cuda::ArrayMut<f32, 1>) -> Result<()> {
    let mut arrived = ARRIVED.lock().expect("no body panics here");
    *arrived += 1;
    MET.notify_all();
    let pair = arrived.next_multiple_of(2);
    let (_arrived, waited) = MET
        .wait_timeout_while(arrived, Duration::from_secs(20), |arrived| *arrived < pair)
        .expect("no body panics here");
    if waited.timed_out() {
        return Err(Error::internal("nobody came"));
    }
    cx.stream().memcpy_dtod(&x, &mut y)?;
    Ok(())
}
