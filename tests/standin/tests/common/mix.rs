//! The arrays of a call of `mix_*`, and what it should make of them.

use super::{Array, Stream, numbers};
use jax_callable::Result;
use jax_callable::testing::{CallSite, Target};

pub const N: usize = 33;
pub const SCALE: f32 = 2.0;

/// A call site of `mix` in a mode.
pub fn site(mode: &str) -> Result<CallSite> {
    let call = Target::find_cuda(&format!("mix_{mode}"))?.call();
    let call = call.value("s", SCALE);
    let arrays = ["a", "b", "c", "d"].into_iter();
    arrays
        .fold(call, |call, name| call.input_shape(name, [N]))
        .instantiate()
}

/// Arrays for one call.
pub struct Mix {
    pub a: Array,
    pub b: Array,
    /// The in-outs, then `e`.
    pub c: Array,
    pub d: Array,
    pub e: Array,
    /// Where the in-outs come from, if that is elsewhere.
    from: Option<[Array; 2]>,
    pub expected: [Vec<f32>; 3],
}

impl Mix {
    pub fn new(stream: &Stream, seed: u64, is_aliased: bool) -> Mix {
        let array = || stream.array(&[0.0; N]);
        let mut mix = Mix {
            a: array(),
            b: array(),
            c: array(),
            d: array(),
            e: array(),
            from: (!is_aliased).then(|| [array(), array()]),
            expected: Default::default(),
        };
        mix.set(seed);
        mix
    }

    /// Gives the arrays, which are not in use, other numbers.
    pub fn set(&mut self, seed: u64) {
        let [a, b, c, d, e] = [1, 2, 3, 4, 5].map(|i| numbers(8 * seed + i, N));
        let sum = |x: &[f32], s: f32, y: &[f32]| -> Vec<f32> {
            x.iter().zip(y).map(|(x, y)| s * x + y).collect()
        };
        self.expected = [sum(&a, SCALE, &c), sum(&b, SCALE, &d), sum(&a, 1.0, &b)];
        self.a.set(&a);
        self.b.set(&b);
        self.e.set(&e);
        let (of_c, of_d) = match &self.from {
            Some([c, d]) => (c, d),
            None => (&self.c, &self.d),
        };
        of_c.set(&c);
        of_d.set(&d);
    }

    pub fn run(&self, site: &CallSite, stream: &Stream) -> Result<()> {
        let [c, d] = match &self.from {
            Some(from) => [from[0].address, from[1].address],
            None => [self.c.address, self.d.address],
        };
        let operands = [self.a.address, self.b.address, c, d];
        let results = [self.c.address, self.d.address, self.e.address];
        // SAFETY: the arrays have the sizes of the call site, and stay until they are waited for.
        unsafe { site.execute(stream.device as i32, stream.raw(), &operands, &results) }
    }

    /// Once the work is done: whether the numbers are right.
    pub fn is(&self) -> bool {
        [&self.c, &self.d, &self.e].map(Array::get) == self.expected
    }

    #[track_caller]
    pub fn check(&self, what: &str) {
        let got = [&self.c, &self.d, &self.e].map(Array::get);
        assert_eq!(got, self.expected, "{what}");
    }
}
