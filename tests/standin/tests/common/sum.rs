//! The arrays of a call of one of the bodies z <- f(x, y).

use super::mix::N;
use super::{Array, Stream, numbers};
use jax_callable::Result;
use jax_callable::testing::{CallSite, Target};

/// A call site of such a callable.
pub fn site(name: &str) -> CallSite {
    let call = Target::find_cuda(name).unwrap().call();
    let call = call.input_shape("x", [N]).input_shape("y", [N]);
    call.instantiate().unwrap()
}

/// What most bodies do.
pub fn sum(x: f32, y: f32) -> f32 {
    x + y
}

/// Arrays for one call: x, y, z, scratch.
pub struct Sum([Array; 4]);

impl Sum {
    pub fn new(stream: &Stream, seed: u64) -> Sum {
        Sum([0, 1, 2, 3].map(|i| stream.array(&numbers(seed + i, N))))
    }

    pub fn run(&self, site: &CallSite, stream: &Stream) -> Result<()> {
        let [x, y, z, scratch] = &self.0;
        let results = [z.address, scratch.address];
        let results = &results[..site.result_sizes().len()];
        // SAFETY: the arrays have the sizes of the call site, and stay until they are waited for.
        unsafe {
            let operands = [x.address, y.address];
            site.execute(stream.device as i32, stream.raw(), &operands, results)
        }
    }

    /// Gives z, which is not in use, other numbers.
    pub fn forget(&self) {
        self.0[2].set(&[0.5; N]);
    }

    /// Once the work is done: whether z is that.
    pub fn is(&self, expected: impl Fn(f32, f32) -> f32) -> bool {
        let Sum([x, y, z, _]) = self;
        let mut triples = x.get().into_iter().zip(y.get()).zip(z.get());
        triples.all(|((x, y), z)| expected(x, y) == z)
    }

    #[track_caller]
    pub fn check(&self, expected: impl Fn(f32, f32) -> f32, what: &str) {
        assert!(
            self.is(expected),
            "{what}: {:?}",
            self.0.each_ref().map(Array::get)
        );
    }
}
