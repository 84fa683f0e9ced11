//! Which calls fail, with what.

use super::random::Random;
use cudarc::driver::sys::CUresult;
use std::cell::Cell;
use std::collections::BTreeMap;

thread_local! {
    static IS_EXEMPT: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread's calls are neither counted nor made to fail.
pub(crate) fn set_exempt(is_exempt: bool) {
    IS_EXEMPT.set(is_exempt);
}

#[derive(Default)]
pub(crate) struct Faults {
    /// How many calls were made since the last arming.
    pub(crate) count: u64,
    /// The same of each function that was called.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// The call that fails, counted from 0.
    at: Option<(u64, CUresult)>,
    /// One in so many fails.
    sometimes: Option<(Random, usize)>,
    /// Of such calls, the first that may fail.
    next: u64,
    /// The call that failed last.
    pub(crate) failed: &'static str,
    /// How many were made to fail since the last arming.
    pub(crate) failures: u64,
}

/// After a failure, so many calls succeed: two that belong together do not fail both.
const PAUSE: u64 = 256;

/// What fails at random.
const CODES: [CUresult; 4] = [
    CUresult::CUDA_ERROR_OUT_OF_MEMORY,
    CUresult::CUDA_ERROR_INVALID_VALUE,
    CUresult::CUDA_ERROR_LAUNCH_FAILED,
    CUresult::CUDA_ERROR_NOT_SUPPORTED,
];

impl Faults {
    /// One call in the future fails, or none.
    pub(crate) fn arm(&mut self, at: Option<(u64, CUresult)>) {
        *self = Faults {
            at,
            ..Faults::default()
        };
    }

    /// Any call may fail.
    pub(crate) fn arm_random(&mut self, seed: u64, one_in: usize) {
        self.arm(None);
        self.sometimes = Some((Random::new(seed), one_in));
    }

    /// Counts a call, and says whether it fails.
    pub(crate) fn next(&mut self, name: &'static str) -> Option<CUresult> {
        if IS_EXEMPT.get() {
            return None;
        }
        let number = self.count;
        self.count += 1;
        *self.counts.entry(name).or_default() += 1;
        let code = match (&self.at, &mut self.sometimes) {
            (Some((at, code)), _) => (*at == number).then_some(*code),
            (None, Some((random, one_in))) => {
                let fails = random.below(*one_in) == 0 && number >= self.next;
                fails.then(|| CODES[random.below(CODES.len())])
            }
            (None, None) => None,
        }?;
        self.failed = name;
        self.failures += 1;
        self.next = number + PAUSE;
        Some(code)
    }
}
