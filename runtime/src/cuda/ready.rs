//! On which devices something was done already.

use super::device::MAX_DEVICES;
use std::sync::atomic::{AtomicU64, Ordering};

/// A set of devices, for one atomic load to ask.
#[derive(Debug, Default)]
pub(crate) struct Ready(AtomicU64);

const _: () = assert!(MAX_DEVICES <= 64);

impl Ready {
    /// Whether the device is in it.
    pub(crate) fn is_on(&self, ordinal: usize) -> bool {
        self.0.load(Ordering::Acquire) >> ordinal & 1 == 1
    }

    /// Adds a device.
    pub(crate) fn set(&self, ordinal: usize) {
        self.0.fetch_or(1 << ordinal, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::Ready;

    #[test]
    fn devices_are_told_apart() {
        let ready = Ready::default();
        ready.set(0);
        ready.set(63);
        let on: Vec<_> = (0..64).filter(|&ordinal| ready.is_on(ordinal)).collect();
        assert_eq!(on, [0, 63]);
    }
}
