//! Threads x devices x call sites, with clears, evictions, sites that come and go, and failures, all
//! at random moments.

mod common;

use common::mix::{self, Mix};
use common::sum::{self, Sum, sum};
use common::{Gpu, MODES, OWN, Stream, graphs};
use jax_callable::cuda::graphs::GraphCacheMax;
use jax_callable::testing::CallSite;
use std::sync::atomic::{AtomicU64, Ordering};

const THREADS: u64 = 4;
const STEPS: usize = 60;

/// Random numbers of a thread.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end
    }
}

#[derive(Default)]
struct Figures {
    calls: AtomicU64,
    errors: AtomicU64,
}

const SUMS: [&str; 4] = ["scratch", "upload", "allocate", "distance"];

/// A call site, for which calls and arrays are made alike.
struct Site {
    name: String,
    is_mix: bool,
    site: CallSite,
}

impl Site {
    fn random(random: &mut Random) -> Site {
        let mode = MODES[random.below(MODES.len())];
        let is_mix = random.below(2) == 0;
        let body = if is_mix {
            "mix"
        } else {
            SUMS[random.below(SUMS.len())]
        };
        let name = format!("{body}_{mode}");
        let site = match is_mix {
            true => mix::site(mode).unwrap(),
            false => sum::site(&name),
        };
        Site { name, is_mix, site }
    }
}

enum Arrays {
    Mix(Mix),
    Sum(Sum),
}

/// Calls a site at addresses of its own a few times, and looks at what came of it.
fn call(site: &Site, stream: &Stream, random: &mut Random, figures: &Figures) {
    let mut arrays = match site.is_mix {
        true => Arrays::Mix(Mix::new(stream, 1, random.below(2) == 0)),
        false => Arrays::Sum(Sum::new(stream, 1)),
    };
    for _ in 0..1 + random.below(4) {
        let result = match &mut arrays {
            Arrays::Mix(mix) => {
                mix.set(random.below(100) as u64);
                mix.run(&site.site, stream)
            }
            Arrays::Sum(sum) => {
                sum.forget();
                sum.run(&site.site, stream)
            }
        };
        figures.calls.fetch_add(1, Ordering::Relaxed);
        stream.wait();
        match (result, &arrays) {
            (Ok(()), Arrays::Mix(mix)) => mix.check(&site.name),
            (Ok(()), Arrays::Sum(set)) => set.check(sum, &site.name),
            (Err(error), _) => {
                let error = error.to_string();
                assert!(
                    error.contains(&format!("stress.{}: ", site.name)),
                    "{error}"
                );
                assert!(error.contains("CUDA_ERROR_"), "{error}");
                figures.errors.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn thread((gpu, streams, shared): (&Gpu, &[Stream], &[Site]), seed: u64, figures: &Figures) {
    gpu.driver.set_exempt(false);
    let random = &mut Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut own: Vec<Site> = Vec::new();
    for _ in 0..STEPS {
        let stream = &streams[random.below(streams.len())];
        match random.below(12) {
            0 if own.len() < 4 => own.push(Site::random(random)),
            1 if !own.is_empty() => drop(own.swap_remove(random.below(own.len()))),
            2 => graphs(&format!("mix_{}", OWN[random.below(3)])).clear(),
            3 => {
                let max = match random.below(4) {
                    0 => GraphCacheMax::Default,
                    n => GraphCacheMax::Limit(n as u64 - 1),
                };
                graphs(&format!("mix_{}", OWN[random.below(3)])).set_max(max);
            }
            4..8 if !own.is_empty() => call(&own[random.below(own.len())], stream, random, figures),
            _ => call(&shared[random.below(shared.len())], stream, random, figures),
        }
    }
}

/// One seed: the numbers of calls, of those that failed, and of failures injected.
fn run(seed: u64, one_in: Option<usize>) -> [u64; 3] {
    let gpu = Gpu::begin(seed);
    let streams: Vec<_> = [0, 1, 1].map(|device| gpu.stream(device)).into();
    let random = &mut Random(seed | 1);
    let shared: Vec<_> = (0..6).map(|_| Site::random(random)).collect();
    let figures = Figures::default();
    if let Some(one_in) = one_in {
        gpu.driver.arm_random(seed, one_in);
    }
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let (gpu, streams, shared, figures) = (&gpu, &streams, &shared, &figures);
            scope.spawn(move || thread((gpu, streams, shared), THREADS * seed + number, figures));
        }
    });
    let (injected, _) = gpu.driver.failures();
    gpu.driver.arm(u64::MAX, 0);
    // After all that, every site works.
    for site in &shared {
        let errors = figures.errors.load(Ordering::Relaxed);
        call(site, &streams[0], random, &figures);
        assert_eq!(figures.errors.load(Ordering::Relaxed), errors);
    }
    drop((shared, streams));
    for mode in OWN {
        graphs(&format!("mix_{mode}")).set_max(GraphCacheMax::Default);
        assert_eq!(graphs(&format!("mix_{mode}")).len(), 0, "seed {seed}");
    }
    gpu.expect_clean(&format!("seed {seed}"));
    [
        figures.calls.into_inner(),
        figures.errors.into_inner(),
        injected,
    ]
}

/// So many seeds, or as many as `STANDIN_LONG` says.
fn seeds(few: u64) -> std::ops::RangeInclusive<u64> {
    let long = std::env::var("STANDIN_LONG").ok();
    1..=long.and_then(|long| long.parse().ok()).unwrap_or(few)
}

#[test]
fn threads_devices_and_sites() {
    let mut total = 0;
    for seed in seeds(20) {
        let [calls, errors, _] = run(seed, None);
        assert_eq!(errors, 0, "seed {seed}");
        total += calls;
    }
    eprintln!("stand-in: stress: {total} calls, all right");
}

#[test]
fn threads_devices_sites_and_failures() {
    let mut total = [0; 3];
    for seed in seeds(20) {
        let figures = run(seed, Some(300));
        total = std::array::from_fn(|i| total[i] + figures[i]);
    }
    let [calls, errors, injected] = total;
    assert!(errors > 0 && injected > errors);
    eprintln!(
        "stand-in: stress with {injected} failures: {calls} calls, {errors} gave a clear error, \
         all others right"
    );
}
