//! The state of a call site on each of its devices.

use super::entry::contain_panic;
use crate::cuda::{Device, MAX_DEVICES};
use crate::error::Result;
use crate::state::Built;
use std::any::Any;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A state for each device, built when a device is made ready.
#[derive(Debug)]
pub(crate) struct DeviceStates(Box<[Slot]>);

/// A lock for each device: constructors may wait for those on other devices.
#[derive(Debug, Default)]
struct Slot {
    state: OnceLock<DeviceState>,
    building: Mutex<()>,
}

#[derive(Debug)]
struct DeviceState {
    ordinal: usize,
    /// Always there, but when dropped.
    state: Option<Built>,
}

impl DeviceStates {
    pub(super) fn new() -> DeviceStates {
        DeviceStates((0..MAX_DEVICES).map(|_| Slot::default()).collect())
    }

    /// The state on a device, if it was built.
    #[inline]
    pub(super) fn get(&self, ordinal: usize) -> Option<&(dyn Any + Send + Sync)> {
        self.0[ordinal].state.get()?.state.as_deref()
    }

    /// Builds the state on a device, once. What fails is tried again by the next call.
    pub(super) fn build(
        &self,
        ordinal: usize,
        build: impl FnOnce() -> Result<Built>,
    ) -> Result<()> {
        let slot = &self.0[ordinal];
        let _guard = slot.building.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.state.get().is_none() {
            let state = Some(build()?);
            let _ = slot.state.set(DeviceState { ordinal, state });
        }
        Ok(())
    }
}

impl Drop for DeviceState {
    fn drop(&mut self) {
        let state = self.state.take();
        // Each by itself: a panic in one must not keep the others.
        Device::drop_on(self.ordinal, || {
            contain_panic(move || drop(state));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn built(value: impl Any + Send + Sync) -> Result<Built> {
        Ok(Box::new(value))
    }

    fn get(states: &DeviceStates, ordinal: usize) -> Option<u32> {
        states.get(ordinal)?.downcast_ref().copied()
    }

    #[test]
    fn each_device_has_one() {
        let states = DeviceStates::new();
        assert_eq!(get(&states, 0), None);
        for value in [10, 20_u32] {
            for ordinal in [0, 63] {
                states
                    .build(ordinal, || built(value + ordinal as u32))
                    .unwrap();
            }
        }
        let found = [0, 1, 63].map(|ordinal| get(&states, ordinal));
        assert_eq!(found, [Some(10), None, Some(73)]);
    }

    #[test]
    fn many_threads_build_one() {
        let (states, count) = (DeviceStates::new(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let build = || built(count.fetch_add(1, Ordering::Relaxed));
                    states.build(3, build).unwrap();
                    assert_eq!(get(&states, 3), Some(0));
                });
            }
        });
        assert_eq!(count.into_inner(), 1);
    }

    #[test]
    fn a_constructor_may_wait_for_that_of_another_device() {
        let (states, barrier) = (DeviceStates::new(), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            for ordinal in [0, 1] {
                let (states, barrier) = (&states, &barrier);
                scope.spawn(move || {
                    states.build(ordinal, || {
                        barrier.wait();
                        built(1_u32)
                    })
                });
            }
        });
        assert_eq!([0, 1].map(|ordinal| get(&states, ordinal)), [Some(1); 2]);
    }

    #[test]
    fn what_failed_is_tried_again() {
        let states = DeviceStates::new();
        let failed = states.build(1, || Err(Error::internal("no")));
        assert_eq!(failed.unwrap_err().to_string(), "no");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            states.build(1, || panic!("neither"))
        }));
        assert!(panicked.is_err());
        states.build(1, || built(5_u32)).unwrap();
        assert_eq!(get(&states, 1), Some(5));
    }

    struct Hostile(Arc<AtomicU32>);

    impl Drop for Hostile {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
            panic!("does not leave");
        }
    }

    #[test]
    fn all_are_dropped_though_each_panics() {
        let states = DeviceStates::new();
        let dropped = Arc::new(AtomicU32::new(0));
        for ordinal in 0..3 {
            let build = || built(Hostile(dropped.clone()));
            states.build(ordinal, build).unwrap();
        }
        drop(states);
        assert_eq!(dropped.load(Ordering::Relaxed), 3);
    }
}
