//! Slots and targets in every order in which two or three threads can meet (`cargo xtask loom`).

use super::super::slot::{Graphs, Slot};
use super::super::target::{Counted, Target};
use crate::signature::GraphCacheMax;
use std::sync::Arc;

/// Executables that are no more than their stamps.
#[derive(Default)]
struct Fake(Vec<(u64, Counted<()>)>);

impl Graphs for Fake {
    fn oldest(&self) -> Option<u64> {
        self.0.iter().map(|(stamp, _)| *stamp).min()
    }

    fn evict_oldest(&mut self) {
        let oldest = self.oldest();
        self.0.retain(|(stamp, _)| Some(*stamp) != oldest);
    }

    fn clear(&mut self) -> usize {
        std::mem::take(&mut self.0).len()
    }
}

impl Fake {
    fn make(&mut self, target: &Arc<Target>) {
        let stamp = target.stamp();
        self.0.push((stamp, target.count(())));
    }
}

/// Three threads meet in too many orders to try all: in all with that many preemptions.
fn model(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(test);
}

fn target(limit: u64) -> Arc<Target> {
    Arc::new(Target::new(GraphCacheMax::Limit(limit)))
}

/// A slot with one executable.
fn used_slot(target: &Arc<Target>) -> Arc<Slot<Fake>> {
    let mut graphs = Fake::default();
    graphs.make(target);
    Slot::new(target, graphs)
}

/// A call of the site by another thread, that makes so many executables.
fn call(
    target: &Arc<Target>,
    slot: &Arc<Slot<Fake>>,
    makes: usize,
) -> loom::thread::JoinHandle<()> {
    let (target, slot) = (Arc::clone(target), Arc::clone(slot));
    loom::thread::spawn(move || {
        let mut turn = slot.lock();
        for _ in 0..makes {
            turn.0.push((target.stamp(), target.count(())));
        }
    })
}

#[test]
fn loom_a_clear_reaches_a_site_in_use() {
    loom::model(|| {
        let target = target(8);
        let slot = used_slot(&target);
        let user = call(&target, &slot, 0);
        target.clear();
        user.join().unwrap();
        assert_eq!(target.executables(), 0);
        assert!(slot.lock().0.is_empty());
    });
}

#[test]
fn loom_two_clears_reach_a_site_in_use() {
    model(|| {
        let target = target(8);
        let slot = used_slot(&target);
        let user = call(&target, &slot, 0);
        let other = loom::thread::spawn({
            let target = Arc::clone(&target);
            move || target.clear()
        });
        target.clear();
        // Either clear is done, or left to who holds the site.
        user.join().unwrap();
        other.join().unwrap();
        assert_eq!(target.executables(), 0);
    });
}

#[test]
fn loom_the_limit_holds_when_it_is_quiet() {
    model(|| {
        let target = target(1);
        let slots = [(); 2].map(|()| Slot::new(&target, Fake::default()));
        let users = slots.each_ref().map(|slot| call(&target, slot, 1));
        users.into_iter().for_each(|user| user.join().unwrap());
        let held: usize = slots.iter().map(|slot| slot.lock().0.len()).sum();
        assert!(held <= 1, "{held}");
        assert_eq!(target.executables(), held as u64);
    });
}

#[test]
fn loom_a_smaller_limit_reaches_a_site_in_use() {
    loom::model(|| {
        let target = target(2);
        let slot = used_slot(&target);
        let user = call(&target, &slot, 1);
        target.set_limit(GraphCacheMax::Limit(1));
        user.join().unwrap();
        assert_eq!(target.executables(), slot.lock().0.len() as u64);
        assert!(target.executables() <= 1);
    });
}
