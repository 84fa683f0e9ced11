//! The cache against a list in order of use.

use super::super::cache::{Cache, Miss};
use super::super::random::Random;
use super::super::target::Target;
use crate::signature::GraphCacheMax;
use std::sync::Arc;

/// An executable: the addresses in its nodes, and which one it is.
struct Executable {
    addresses: Vec<u64>,
    id: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Hit(usize),
    Updated(usize),
    Made(usize),
    Once,
}

/// One call site on one device with its target.
struct Calls {
    target: Arc<Target>,
    cache: Cache<Executable>,
    made: usize,
}

impl Calls {
    fn new(limit: GraphCacheMax) -> Calls {
        Calls {
            target: Arc::new(Target::new(limit)),
            cache: Cache::default(),
            made: 0,
        }
    }

    /// A call, and what became of it; `fails` is for a failure on the way.
    fn call(&mut self, addresses: &[u64], fails: bool) -> Event {
        let stamp = self.target.stamp();
        if let Some(executable) = self.cache.hit(addresses, stamp) {
            assert_eq!(executable.addresses, addresses);
            return Event::Hit(executable.id);
        }
        let limit = self.target.limit();
        let miss = self.cache.miss(addresses, limit, || self.target.has_room());
        let (executable, event) = match miss {
            Miss::Once => return Event::Once,
            Miss::Instantiate => {
                let executable = Executable {
                    addresses: addresses.to_vec(),
                    id: self.made,
                };
                self.made += 1;
                (self.target.count(executable), Event::Made(self.made - 1))
            }
            Miss::Update(mut executable) => {
                assert_ne!(executable.addresses, addresses);
                executable.addresses = addresses.to_vec();
                let id = executable.id;
                (executable, Event::Updated(id))
            }
        };
        if !fails {
            self.cache.insert(addresses, stamp, executable);
        }
        event
    }

    fn evict_to(&mut self, limit: u64) {
        self.target.set_limit(GraphCacheMax::Limit(limit));
        while self.target.executables() > limit {
            drop(self.cache.take_oldest());
        }
    }
}

/// The same with lists alone.
#[derive(Default)]
struct Model {
    /// The latest used last.
    kept: Vec<(Vec<u64>, usize)>,
    /// What was in `kept`, the latest last.
    gone: Vec<Vec<u64>>,
    made: usize,
}

impl Model {
    fn call(&mut self, addresses: &[u64], limit: usize, fails: bool) -> Event {
        if let Some(found) = self.kept.iter().position(|(kept, _)| kept == addresses) {
            let entry = self.kept.remove(found);
            self.kept.push(entry);
            return Event::Hit(self.kept.last().unwrap().1);
        }
        if limit == 0 {
            return Event::Once;
        }
        let recent = self.gone.len().saturating_sub(64);
        let comes_back = self.gone[recent..].iter().any(|gone| gone == addresses);
        let event = if self.kept.is_empty() || (comes_back && self.kept.len() < limit) {
            self.made += 1;
            Event::Made(self.made - 1)
        } else {
            Event::Updated(self.drop_oldest())
        };
        if !fails {
            let (Event::Made(id) | Event::Updated(id)) = event else {
                unreachable!()
            };
            self.gone.retain(|gone| gone != addresses);
            self.kept.push((addresses.to_vec(), id));
        }
        event
    }

    fn drop_oldest(&mut self) -> usize {
        let (addresses, id) = self.kept.remove(0);
        self.gone.push(addresses);
        id
    }
}

#[test]
fn random_calls_follow_the_model() {
    let mut events = [0; 4];
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut limit = random.below(9) as usize;
        // More addresses than are remembered, in some runs.
        let num_sets = 2 + random.below(if seed % 5 == 0 { 200 } else { 12 });
        let mut calls = Calls::new(GraphCacheMax::Limit(limit as u64));
        let mut model = Model::default();
        let mut set = 0;
        for step in 0..3000 {
            // Around, with jumps.
            set = match random.below(8) {
                0 => random.below(num_sets),
                1 => set,
                _ => (set + 1) % num_sets,
            };
            let addresses = [set << 8, (set / 2 + 1) << 9];
            let fails = random.below(40) == 0;
            let event = calls.call(&addresses, fails);
            let case = format!("seed {seed}, step {step}, limit {limit}");
            assert_eq!(event, model.call(&addresses, limit, fails), "{case}");
            events[match event {
                Event::Hit(_) => 0,
                Event::Updated(_) => 1,
                Event::Made(_) => 2,
                Event::Once => 3,
            }] += 1;
            if random.below(300) == 0 {
                limit = random.below(9) as usize;
                calls.evict_to(limit as u64);
                while model.kept.len() > limit {
                    model.drop_oldest();
                }
            }
            if random.below(700) == 0 {
                assert_eq!(calls.cache.take_all().len(), model.kept.len(), "{case}");
                model.kept.clear();
                model.gone.clear();
            }
            assert_eq!(calls.cache.len(), model.kept.len(), "{case}");
            assert_eq!(calls.cache.oldest().is_none(), calls.cache.len() == 0);
            let executables = calls.target.executables();
            assert_eq!(executables, model.kept.len() as u64, "{case}");
            assert!(executables <= limit as u64, "{case}");
        }
    }
    assert!(events.iter().all(|&count| count > 1000), "{events:?}");
}

#[test]
fn a_limit_of_two() {
    let mut calls = Calls::new(GraphCacheMax::Limit(2));
    let [a, b, c] = [&[1, 2], &[3, 4], &[5, 6]];
    let events = [a, b, a, c, a, b, b, c].map(|call| calls.call(call, false));
    use Event::*;
    assert_eq!(
        events,
        [
            Made(0),
            // One executable is enough while nothing comes back.
            Updated(0),
            Made(1),
            // Of `b` and `a`, the former is older.
            Updated(0),
            Hit(1),
            Updated(0),
            Hit(0),
            Updated(1),
        ]
    );
}

#[test]
fn moving_addresses_need_one_executable() {
    let mut calls = Calls::new(GraphCacheMax::Unlimited);
    for call in 0..1000 {
        calls.call(&[call << 8], false);
    }
    assert_eq!((calls.made, calls.cache.len()), (1, 1));
    // Three sets in turn become three.
    let events: Vec<_> = (0..12).map(|i| calls.call(&[i % 3], false)).collect();
    assert!(events[..3].iter().all(|e| *e == Event::Updated(0)));
    assert_eq!(events[3..5], [Event::Made(1), Event::Made(2)]);
    let mut hits = events[5..].iter();
    assert!(
        hits.all(|event| matches!(event, Event::Hit(_))),
        "{events:?}"
    );
}

#[test]
fn nothing_is_kept_under_a_limit_of_zero() {
    let mut calls = Calls::new(GraphCacheMax::Limit(0));
    assert_eq!([0; 5].map(|_| calls.call(&[1], false)), [Event::Once; 5]);
    assert_eq!(calls.target.executables(), 0);
}

#[test]
fn a_shorter_list_of_addresses_is_another() {
    let mut calls = Calls::new(GraphCacheMax::Limit(4));
    calls.call(&[1, 2], false);
    assert_eq!(calls.call(&[1], false), Event::Updated(0));
}
