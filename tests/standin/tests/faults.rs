//! Every call of the driver fails in turn: then the error is clear, or the call has found another
//! way and its numbers are right; the stream is usable, nothing is left, and the next call is right.

mod common;

use common::mix::{self, Mix};
use common::sum::{self, Sum, sum};
use common::{Gpu, MODES, Stream, graphs};
use jax_callable::Result;
use jax_callable::testing::CallSite;

/// Codes of the driver with their names: out of memory, an invalid value, a failed launch before,
/// something that is not supported.
const CODES: [(u32, &str); 4] = [
    (2, "CUDA_ERROR_OUT_OF_MEMORY"),
    (1, "CUDA_ERROR_INVALID_VALUE"),
    (719, "CUDA_ERROR_LAUNCH_FAILED"),
    (801, "CUDA_ERROR_NOT_SUPPORTED"),
];

/// The addresses of calls: those of one letter are the same.
const CALLS: &[u8] = b"AABCAD";

/// What is called in a scenario.
struct Scenario<'a> {
    body: &'a str,
    mode: &'a str,
    /// Whether each call is waited for, or only the last.
    waits: bool,
}

/// A call that may fail.
trait Arrays {
    fn run(&self, site: &CallSite, stream: &Stream) -> Result<()>;
    fn is_right(&self) -> bool;
    fn renew(&mut self, seed: u64);
}

impl Arrays for Mix {
    fn run(&self, site: &CallSite, stream: &Stream) -> Result<()> {
        Mix::run(self, site, stream)
    }
    fn is_right(&self) -> bool {
        self.is()
    }
    fn renew(&mut self, seed: u64) {
        self.set(seed);
    }
}

impl Arrays for (Sum, fn(f32, f32) -> f32) {
    fn run(&self, site: &CallSite, stream: &Stream) -> Result<()> {
        self.0.run(site, stream)
    }
    fn is_right(&self) -> bool {
        self.0.is(self.1)
    }
    fn renew(&mut self, _: u64) {
        self.0.forget();
    }
}

impl Scenario<'_> {
    fn name(&self) -> String {
        format!("{}_{}", self.body, self.mode)
    }

    fn site(&self) -> CallSite {
        match self.body {
            "mix" => mix::site(self.mode).unwrap(),
            _ => sum::site(&self.name()),
        }
    }

    fn arrays(&self, stream: &Stream, seed: u64) -> Box<dyn Arrays> {
        match self.body {
            "mix" => Box::new(Mix::new(stream, seed, seed != 1)),
            "halves" => Box::new((Sum::new(stream, 1), (|x, _| 3.0 * x) as fn(f32, f32) -> f32)),
            _ => Box::new((Sum::new(stream, 1), sum as fn(f32, f32) -> f32)),
        }
    }

    /// The whole life of a call site. The errors of its calls, each with a look at what it did to
    /// the driver's state.
    fn run(&self, gpu: &Gpu, stream: &Stream) -> Vec<String> {
        let mut sets: Vec<_> = (0..4).map(|i| self.arrays(stream, i)).collect();
        let site = self.site();
        let (mut errors, mut to_check) = (Vec::new(), Vec::new());
        for (i, &letter) in CALLS.iter().enumerate() {
            let number = usize::from(letter - b'A');
            let set = &mut sets[number];
            if self.waits {
                set.renew(i as u64);
            }
            let result = set.run(&site, stream);
            assert_eq!(gpu.driver.live().captures, 0, "a capture is left open");
            match result {
                Ok(()) if self.waits => {
                    stream.wait();
                    assert!(set.is_right(), "wrong numbers in call {i}");
                }
                // Those of A, whose in-outs change again and again, are not known.
                Ok(()) if letter != b'A' => to_check.push(number),
                Ok(()) => {}
                Err(error) => errors.push(error.to_string()),
            }
            if self.waits {
                stream.wait();
            }
            if i == 3 {
                graphs(&self.name()).clear();
            }
        }
        drop(site);
        stream.wait();
        for number in to_check {
            assert!(sets[number].is_right(), "wrong numbers in arrays {number}");
        }
        errors
    }
}

/// Runs a scenario with each of its calls of the driver failing in turn.
fn fail_in_turn(scenario: &Scenario<'_>) -> Figures {
    let (name, mut figures) = (scenario.name(), Figures::default());
    {
        // Once before, so that modules are loaded.
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(0);
        assert_eq!(scenario.run(&gpu, &stream), [] as [&str; 0]);
    }
    let gpu = Gpu::begin(0);
    gpu.driver.arm(u64::MAX, 0);
    scenario.run(&gpu, &gpu.stream(0));
    let calls = gpu.driver.calls();
    assert!(calls > 20, "{calls}");
    // Each call with one code, or in the long form with all.
    let long = std::env::var_os("STANDIN_LONG").is_some();
    for turn in 0..if long { CODES.len() } else { 1 } {
        for at in 0..calls {
            let (code, code_name) = CODES[(at as usize + turn) % CODES.len()];
            let stream = gpu.stream(0);
            gpu.driver.arm(at, code);
            let run = std::panic::AssertUnwindSafe(|| scenario.run(&gpu, &stream));
            let outcome = std::panic::catch_unwind(run);
            let (failures, failed) = gpu.driver.failures();
            gpu.driver.arm(u64::MAX, 0);
            let what = format!("{name}: call {at} of {calls}, {failed}, fails with {code_name}");
            assert_eq!(failures, 1, "{what}");
            let errors = outcome.unwrap_or_else(|_| panic!("{what}"));
            let prefix = format!("faults.{name}: ");
            for error in &errors {
                let is_clear = error.contains(&prefix) && error.contains(code_name);
                assert!(is_clear, "{what}: {error}");
            }
            assert!(errors.len() <= 1, "{what}: {errors:#?}");
            drop(stream);
            gpu.expect_clean(&what);
            figures.injected += 1;
            figures.errors += errors.len();
        }
    }
    figures
}

#[derive(Default)]
struct Figures {
    injected: usize,
    errors: usize,
}

/// All of a body's modes.
fn fail_all(body: &str) {
    let mut total = Figures::default();
    for mode in MODES {
        for waits in [true, false] {
            let scenario = Scenario { body, mode, waits };
            let figures = fail_in_turn(&scenario);
            total.injected += figures.injected;
            total.errors += figures.errors;
        }
    }
    let Figures { injected, errors } = total;
    eprintln!(
        "stand-in: {body}: {injected} failures injected, {errors} gave a clear error, {} another \
         way, all survived",
        injected - errors
    );
}

#[test]
fn mix_survives_any_failure() {
    fail_all("mix");
}

#[test]
fn other_bodies_survive_any_failure() {
    for body in [
        "halves", "distance", "scratch", "fork", "twins", "upload", "allocate",
    ] {
        fail_all(body);
    }
}
