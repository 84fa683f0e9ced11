//! What the tests share: XLA's side of a device, arrays on it, and callables in every graph mode.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod bodies;
pub mod mix;
pub mod sum;

use jax_callable::cuda::graphs::Graphs;
use standin::{Driver, Live};
use std::ffi::c_void;
use std::ptr::with_exposed_provenance_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The modes, as callables' names end.
pub const MODES: [&str; 5] = ["none", "jax", "warp", "staged", "staged_ex"];
/// Those with graphs of our own.
pub const OWN: [&str; 3] = ["warp", "staged", "staged_ex"];

/// The driver, for one test at a time. At the end nothing may be left, and nothing was misused.
pub struct Gpu {
    pub driver: &'static Driver,
    before: Live,
    _turn: MutexGuard<'static, ()>,
}

impl Gpu {
    /// Work runs when it is waited for if the seed is 0, else at random moments.
    pub fn begin(seed: u64) -> Gpu {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let driver = Driver::load();
        driver.arm(u64::MAX, 0);
        driver.finish();
        driver.misuses();
        driver.set_seed(seed);
        Gpu {
            driver,
            before: driver.live(),
            _turn: turn,
        }
    }

    pub fn stream(&self, device: usize) -> Stream {
        Stream {
            device,
            handle: self.driver.open(device),
            driver: self.driver,
        }
    }

    /// What is there that was not there at the beginning, but for modules.
    #[track_caller]
    pub fn expect_clean(&self, when: &str) {
        self.driver.finish();
        assert_eq!(self.driver.misuses(), "", "{when}");
        let live = Live {
            modules: self.before.modules,
            ..self.driver.live()
        };
        assert_eq!(live, self.before, "{when}");
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.expect_clean("at the end of the test");
        }
    }
}

/// A stream of XLA's.
pub struct Stream {
    pub device: usize,
    handle: u64,
    driver: &'static Driver,
}

impl Stream {
    pub fn raw(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.handle as usize)
    }

    pub fn wait(&self) {
        self.driver.wait(self.handle);
    }

    pub fn array(&self, values: &[f32]) -> Array {
        let address = self.driver.allocate(self.device, 4 * values.len());
        let array = Array {
            address,
            len: values.len(),
            driver: self.driver,
        };
        array.set(values);
        array
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.driver.close(self.handle);
    }
}

/// An array of numbers on a device.
pub struct Array {
    pub address: u64,
    len: usize,
    driver: &'static Driver,
}

impl Array {
    /// What it holds. The work of its streams must be done.
    pub fn get(&self) -> Vec<f32> {
        let pointer = with_exposed_provenance_mut::<f32>(self.address as usize);
        // SAFETY: it has this many elements, and no other thread runs work.
        unsafe { std::slice::from_raw_parts(pointer, self.len) }.to_vec()
    }

    pub fn set(&self, values: &[f32]) {
        assert_eq!(values.len(), self.len);
        let pointer = with_exposed_provenance_mut::<f32>(self.address as usize);
        // SAFETY: as for `get`.
        unsafe { pointer.copy_from(values.as_ptr(), self.len) };
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        self.driver.free(self.address);
    }
}

/// The graphs of a callable of this test.
pub fn graphs(name: &str) -> Graphs {
    let krate = module_path!().split("::").next().expect("it has a crate");
    Graphs::of(&format!("{krate}.{name}")).expect("a callable")
}

/// Small integers, exact in all sums, that follow from a seed.
pub fn numbers(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % 17) as f32 - 8.0
    };
    (0..len).map(|_| next()).collect()
}
