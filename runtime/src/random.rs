//! Random cases for tests, the same in every run.

/// Numbers that look random (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A sequence for each seed from 1.
    pub(crate) fn new(seed: u64) -> Random {
        Random(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed))
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}
