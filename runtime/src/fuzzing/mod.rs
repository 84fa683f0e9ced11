//! What a fuzzer calls (`cargo xtask fuzz`): functions of bytes, which panic if what the bytes
//! stand for is not handled as a plain model says.

pub(crate) mod choices;

pub use crate::dims::fuzz::expressions;
pub use crate::ffi::fuzz::attributes::attributes;
pub use crate::ffi::fuzz::frames::frames;

#[cfg(test)]
mod tests {
    use super::choices::Choices;

    /// Random bytes, the same in every run.
    fn inputs(count: u64) -> impl Iterator<Item = Vec<u8>> {
        (0..if cfg!(miri) { count / 500 } else { count }).map(|seed| {
            let mut state = seed;
            let mut byte = || {
                // SplitMix64.
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut bits = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                (bits >> 56) as u8
            };
            let len = 4 * usize::from(byte());
            (0..len).map(|_| byte()).collect()
        })
    }

    /// Runs a target, and checks that it saw something of each kind: a model that refuses
    /// everything would find nothing wrong.
    fn run<const KINDS: usize>(count: u64, target: impl Fn(&mut Choices<'_>, &mut [u64; KINDS])) {
        let mut seen = [0; KINDS];
        for bytes in inputs(count) {
            target(&mut Choices::new(&bytes), &mut seen);
        }
        let least = if cfg!(miri) { 0 } else { count / 200 };
        assert!(seen.iter().all(|&count| count >= least), "{seen:?}");
    }

    #[test]
    fn expressions() {
        run(10_000, crate::dims::fuzz::check_one);
    }

    #[test]
    fn attributes() {
        run(5_000, crate::ffi::fuzz::attributes::check_one);
    }

    #[test]
    fn frames() {
        run(5_000, crate::ffi::fuzz::frames::check_one);
    }
}
