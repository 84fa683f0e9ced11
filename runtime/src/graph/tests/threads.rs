//! Targets, slots and eviction, alone and from several threads.

use super::super::cache::{Cache, Miss};
use super::super::random::Random;
use super::super::slot::{Graphs, Slot};
use super::super::target::{Counted, Site, Target};
use crate::signature::GraphCacheMax;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A driver whose executables are numbers: it notices what is used after it was destroyed,
/// destroyed twice, or left.
#[derive(Default)]
struct Driver {
    alive: Mutex<BTreeSet<usize>>,
    made: AtomicUsize,
}

struct Executable {
    driver: Arc<Driver>,
    id: usize,
    addresses: Vec<u64>,
}

impl Driver {
    fn instantiate(self: &Arc<Driver>, addresses: &[u64]) -> Executable {
        let id = self.made.fetch_add(1, Ordering::Relaxed);
        assert!(self.alive.lock().unwrap().insert(id));
        Executable {
            driver: Arc::clone(self),
            id,
            addresses: addresses.to_vec(),
        }
    }

    fn alive(&self) -> usize {
        self.alive.lock().unwrap().len()
    }
}

impl Executable {
    fn launch(&self, addresses: &[u64]) {
        assert!(self.driver.alive.lock().unwrap().contains(&self.id));
        assert_eq!(self.addresses, addresses);
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        assert!(self.driver.alive.lock().unwrap().remove(&self.id));
    }
}

#[derive(Default)]
struct Fake(Cache<Executable>);

impl Graphs for Fake {
    fn oldest(&self) -> Option<u64> {
        self.0.oldest()
    }

    fn evict_oldest(&mut self) {
        drop(self.0.take_oldest());
    }

    fn clear(&mut self) -> usize {
        self.0.take_all().len()
    }
}

fn call(target: &Arc<Target>, slot: &Slot<Fake>, driver: &Arc<Driver>, addresses: &[u64]) {
    let mut turn = slot.lock();
    let stamp = target.stamp();
    let counters = &target.counters;
    counters.launches.add(1);
    if let Some(executable) = turn.0.hit(addresses, stamp) {
        executable.launch(addresses);
        counters.hits.add(1);
        return;
    }
    let make = || -> Counted<Executable> {
        counters.instantiations.add(1);
        target.count(driver.instantiate(addresses))
    };
    let miss = turn.0.miss(addresses, target.limit(), || target.has_room());
    let executable = match miss {
        Miss::Once => {
            counters.instantiations.add(1);
            driver.instantiate(addresses).launch(addresses);
            return;
        }
        Miss::Instantiate => make(),
        Miss::Update(mut executable) => {
            counters.updates.add(1);
            executable.addresses = addresses.to_vec();
            executable
        }
    };
    executable.launch(addresses);
    turn.0.insert(addresses, stamp, executable);
}

struct Setting {
    target: Arc<Target>,
    driver: Arc<Driver>,
    slots: Vec<Arc<Slot<Fake>>>,
}

impl Setting {
    fn new(limit: u64, num_slots: usize) -> Setting {
        let target = Arc::new(Target::new(GraphCacheMax::Limit(limit)));
        Setting {
            slots: (0..num_slots)
                .map(|_| Slot::new(&target, Fake::default()))
                .collect(),
            driver: Arc::default(),
            target,
        }
    }

    fn call(&self, slot: usize, addresses: u64) {
        call(&self.target, &self.slots[slot], &self.driver, &[addresses]);
    }

    fn held(&self) -> Vec<usize> {
        self.slots.iter().map(|slot| slot.lock().0.len()).collect()
    }
}

#[test]
fn the_least_recently_used_of_all_sites_goes() {
    let setting = Setting::new(3, 4);
    for slot in [0, 1, 2] {
        setting.call(slot, 1);
    }
    setting.call(0, 1);
    setting.call(3, 1);
    assert_eq!(setting.held(), [1, 0, 1, 1]);
    // Under a full limit a site that comes back to its addresses updates what it has.
    for addresses in [1, 2, 1, 2] {
        setting.call(3, addresses);
    }
    assert_eq!(setting.held(), [1, 0, 1, 1]);
    setting.target.set_limit(GraphCacheMax::Limit(1));
    assert_eq!(setting.held(), [0, 0, 0, 1]);
    assert_eq!(setting.driver.alive(), 1);
    assert_eq!(setting.target.statistics().evictions, 3);
    setting.target.set_limit(GraphCacheMax::Unlimited);
    for addresses in [1, 2, 1, 2] {
        setting.call(3, addresses);
    }
    assert_eq!(setting.held(), [0, 0, 0, 2]);
    setting.target.clear();
    assert_eq!((setting.driver.alive(), setting.held()), (0, vec![0; 4]));
    assert_eq!(setting.target.statistics().evictions, 5);
}

#[test]
fn what_is_idle_for_long_makes_room() {
    let setting = Setting::new(2, 2);
    setting.call(0, 1);
    for call in 0..200 {
        setting.call(1, call % 2);
    }
    assert_eq!(setting.held(), [0, 2]);
    let statistics = setting.target.statistics();
    assert_eq!((statistics.instantiations, statistics.evictions), (3, 1));
}

#[test]
fn sites_in_use_are_left_alone_until_they_are_not() {
    let setting = Setting::new(4, 2);
    for addresses in [1, 2, 1, 2] {
        setting.call(0, addresses);
        setting.call(1, addresses);
    }
    assert_eq!(setting.held(), [2, 2]);
    {
        let _in_use = setting.slots[0].lock();
        setting.target.set_limit(GraphCacheMax::Limit(1));
        assert_eq!(setting.slots[1].lock().0.len(), 0);
        assert_eq!(setting.target.executables(), 2);
    }
    assert_eq!(setting.held(), [1, 0]);
    {
        // As from within a body.
        let mut turn = setting.slots[0].lock();
        setting.target.clear();
        assert_eq!(turn.0.len(), 1);
        let stamp = setting.target.stamp();
        let own = setting.driver.instantiate(&[7]);
        turn.0.insert(&[7], stamp, setting.target.count(own));
    }
    assert_eq!(setting.held(), [0, 0]);
    assert_eq!(setting.driver.alive(), 0);
}

#[test]
fn what_was_used_meanwhile_is_not_evicted() {
    let setting = Setting::new(4, 1);
    setting.call(0, 1);
    let slot: &dyn Site = &*setting.slots[0];
    let stamp = slot.oldest().unwrap();
    setting.call(0, 1);
    assert!(slot.try_evict(stamp));
    assert_eq!(setting.driver.alive(), 1);
    assert!(slot.try_evict(slot.oldest().unwrap()));
    assert_eq!((setting.driver.alive(), slot.oldest()), (0, None));
    let _in_use = setting.slots[0].lock();
    assert!(!slot.try_evict(stamp));
}

#[test]
fn dropped_sites_are_forgotten() {
    let mut setting = Setting::new(8, 3);
    for slot in [0, 1, 2] {
        setting.call(slot, 1);
    }
    setting.slots.remove(1);
    assert_eq!(setting.driver.alive(), 2);
    assert_eq!(setting.target.executables(), 2);
    setting.target.set_limit(GraphCacheMax::Limit(1));
    assert_eq!(setting.held(), [0, 1]);
}

#[test]
fn a_body_that_panics_leaves_the_site_usable() {
    let setting = Setting::new(1, 1);
    setting.call(0, 1);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _turn = setting.slots[0].lock();
        panic!("as a body may");
    }));
    assert!(result.is_err());
    setting.call(0, 1);
    assert_eq!(setting.target.statistics().hits, 1);
    setting.target.clear();
    assert_eq!(setting.driver.alive(), 0);
}

#[test]
fn threads() {
    for round in 0..12 {
        let setting = Setting::new(1 + round % 6, 5);
        thread::scope(|scope| {
            for thread in 0..4 {
                let setting = &setting;
                scope.spawn(move || {
                    let mut random = Random::new(round * 16 + thread);
                    for _ in 0..2000 {
                        let slot = random.below(5) as usize;
                        setting.call(slot, random.below(6));
                        match random.below(100) {
                            0 => setting.target.clear(),
                            1 | 2 => {
                                let limit = GraphCacheMax::Limit(random.below(9));
                                setting.target.set_limit(limit);
                            }
                            3 => {
                                // A site that comes and goes.
                                let slot = Slot::new(&setting.target, Fake::default());
                                call(&setting.target, &slot, &setting.driver, &[1]);
                            }
                            _ => {}
                        }
                    }
                });
            }
        });
        // Quiet: the limit holds exactly, and nothing was lost count of.
        let statistics = setting.target.statistics();
        let limit = setting.target.limit().unwrap();
        assert!(statistics.executables <= limit, "{statistics:?}");
        assert_eq!(statistics.executables, setting.driver.alive() as u64);
        let held: usize = setting.held().iter().sum();
        assert_eq!(statistics.executables, held as u64);
        assert_eq!(
            statistics.launches,
            statistics.hits + statistics.updates + statistics.instantiations,
            "{statistics:?}"
        );
        assert!(statistics.hits > 0 && statistics.evictions > 0);
        setting.target.clear();
        assert_eq!(setting.driver.alive(), 0);
    }
}

#[test]
fn the_limit_is_exact_when_it_is_quiet() {
    for round in 0..300 {
        let setting = Setting::new(1, 4);
        thread::scope(|scope| {
            for slot in 0..4 {
                let setting = &setting;
                scope.spawn(move || {
                    for addresses in 0..1 + round % 3 {
                        setting.call(slot, addresses);
                    }
                });
            }
        });
        assert!(setting.target.executables() <= 1);
    }
}
