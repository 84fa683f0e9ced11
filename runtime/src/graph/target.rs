//! The graphs of one callable, over all of its call sites and devices: limit, stamps,
//! numbers, and the eviction of what was not used for longest.
//!
//! The lock here is for the list of sites alone, and is never held while a site works.

use super::stats::{Counters, Statistics};
use crate::signature::GraphCacheMax;
use crate::sync::{AtomicU64, Mutex, fence};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{self, Ordering};
use std::sync::{Arc, PoisonError, Weak};

/// How many executables a target keeps, if neither it nor anyone else says.
pub(crate) const DEFAULT_LIMIT: u64 = 32;

const UNLIMITED: u64 = u64::MAX;
/// Stands for a limit that is decided elsewhere.
const INHERITED: u64 = u64::MAX - 1;

static DEFAULT: atomic::AtomicU64 = atomic::AtomicU64::new(DEFAULT_LIMIT);

/// The limit of targets that have none of their own: a number, or none for no limit.
pub(crate) fn default_limit() -> Option<u64> {
    bounded(DEFAULT.load(Ordering::SeqCst))
}

/// Sets it, for each of them from its next launch or [`Target::enforce`] on.
pub(crate) fn set_default_limit(limit: Option<u64>) {
    DEFAULT.store(unbounded(limit), Ordering::SeqCst);
}

fn bounded(limit: u64) -> Option<u64> {
    (limit != UNLIMITED).then_some(limit)
}

fn unbounded(limit: Option<u64>) -> u64 {
    limit.map_or(UNLIMITED, |limit| limit.min(INHERITED - 1))
}

/// The executables of one call site on one device, as eviction sees them. No method waits
/// for a lock.
pub(crate) trait Site: Send + Sync {
    /// The stamp of the executable that was not used for longest, if there is one.
    fn oldest(&self) -> Option<u64>;

    /// Gives that executable up if it still has this stamp. False if the site is in use;
    /// then its user calls [`Target::enforce`] when it is done.
    fn try_evict(&self, stamp: u64) -> bool;

    /// Gives all executables up, at once or when the site's user is done.
    fn clear(&self);
}

/// All call sites and devices of one callable in this process.
pub(crate) struct Target {
    attribute: GraphCacheMax,
    limit: AtomicU64,
    stamps: AtomicU64,
    executables: AtomicU64,
    staged_bytes: AtomicU64,
    sites: Mutex<Vec<Weak<dyn Site>>>,
    pub(crate) counters: Counters,
}

impl Target {
    /// `attribute` is what the callable says of `graph_cache_max`.
    pub(crate) fn new(attribute: GraphCacheMax) -> Target {
        Target {
            attribute,
            limit: AtomicU64::new(INHERITED),
            stamps: AtomicU64::new(0),
            executables: AtomicU64::new(0),
            staged_bytes: AtomicU64::new(0),
            sites: Mutex::new(Vec::new()),
            counters: Counters::default(),
        }
    }

    /// Takes note of a site. It is forgotten when it is dropped.
    pub(crate) fn add(&self, site: Weak<dyn Site>) {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        sites.retain(|site| site.strong_count() > 0);
        sites.push(site);
    }

    /// How many executables are kept at most, none for no limit: the number set, else the
    /// attribute's, else the default of the moment.
    pub(crate) fn limit(&self) -> Option<u64> {
        let set = self.limit.load(Ordering::SeqCst);
        if set != INHERITED {
            return bounded(set);
        }
        match self.attribute {
            GraphCacheMax::Limit(limit) => bounded(unbounded(Some(limit))),
            GraphCacheMax::Unlimited => None,
            GraphCacheMax::Default => default_limit(),
        }
    }

    /// Sets the limit, or with `Default` leaves it to the attribute again. What is above
    /// it is evicted now, save what is in use: that follows when it is no longer.
    pub(crate) fn set_limit(&self, limit: GraphCacheMax) {
        let limit = match limit {
            GraphCacheMax::Limit(limit) => unbounded(Some(limit)),
            GraphCacheMax::Unlimited => UNLIMITED,
            GraphCacheMax::Default => INHERITED,
        };
        self.limit.store(limit, Ordering::SeqCst);
        self.enforce();
    }

    /// The next moment: later than all before.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamps.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How many executables there are.
    pub(crate) fn executables(&self) -> u64 {
        self.executables.load(Ordering::SeqCst)
    }

    /// Counts an executable until it is dropped.
    pub(crate) fn count<E>(self: &Arc<Self>, executable: E) -> Counted<E> {
        Counted {
            _tally: Tally::new(self, 1, |target| &target.executables),
            value: executable,
        }
    }

    /// Counts staging memory of so many bytes until it is dropped.
    pub(crate) fn count_staged<M>(self: &Arc<Self>, bytes: u64, memory: M) -> Counted<M> {
        Counted {
            _tally: Tally::new(self, bytes, |target| &target.staged_bytes),
            value: memory,
        }
    }

    /// Whether one more executable is within the limit, or would replace one that was not
    /// used for long.
    pub(crate) fn has_room(&self) -> bool {
        /// So many times the limit in calls is long.
        const LONG: u64 = 16;
        let Some(limit) = self.limit() else {
            return true;
        };
        let long_ago = || {
            let now = self.stamps.load(Ordering::Relaxed);
            now.saturating_sub(limit.saturating_mul(LONG))
        };
        self.executables() < limit
            || (limit > 0 && self.sites().iter().any(|&(stamp, _)| stamp < long_ago()))
    }

    /// Evicts the executables that were not used for longest until the limit holds or all
    /// sites are in use. To be called by whoever was in a site, when no longer in it.
    pub(crate) fn enforce(&self) {
        // Of two threads, one in a site that the other looks at, either the latter
        // sees the site free, or the former sees here what the latter counted or set.
        fence(Ordering::SeqCst);
        self.enforce_fenced();
    }

    /// As [`enforce`](Self::enforce), by who has had that fence since he left his site.
    pub(crate) fn enforce_fenced(&self) {
        let exceeds = || self.limit().is_some_and(|limit| self.executables() > limit);
        let mut has_evicted = true;
        while has_evicted && exceeds() {
            has_evicted = false;
            let sites = self.sites();
            let stamps = sites
                .iter()
                .zip(0..)
                .map(|(&(stamp, _), site)| (stamp, site));
            let mut oldest: BinaryHeap<_> = stamps.map(Reverse).collect();
            // Not a look at all sites for each: they may be thousands.
            while exceeds()
                && let Some(Reverse((stamp, number))) = oldest.pop()
            {
                let (_, site) = &sites[number];
                if site.try_evict(stamp) {
                    has_evicted = true;
                    fence(Ordering::SeqCst);
                    oldest.extend(site.oldest().map(|stamp| Reverse((stamp, number))));
                }
            }
        }
    }

    /// Gives all executables up; those in use when they are no longer.
    pub(crate) fn clear(&self) {
        // In use, a site may have its first executable at any moment.
        for site in self.alive() {
            site.clear();
        }
    }

    /// A look at the numbers.
    pub(crate) fn statistics(&self) -> Statistics {
        let staged_bytes = self.staged_bytes.load(Ordering::SeqCst);
        self.counters.snapshot(self.executables(), staged_bytes)
    }

    /// The sites that have executables, each with the stamp of its oldest.
    fn sites(&self) -> Vec<(u64, Arc<dyn Site>)> {
        let sites = self.alive().into_iter();
        sites
            .filter_map(|site| Some((site.oldest()?, site)))
            .collect()
    }

    /// The sites. They are for use, and to be dropped, without the lock.
    fn alive(&self) -> Vec<Arc<dyn Site>> {
        let sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        sites.iter().filter_map(Weak::upgrade).collect()
    }
}

/// Something that its target counts until it is dropped.
pub(crate) struct Counted<T> {
    // First, so that what is being destroyed is no longer counted.
    _tally: Tally,
    value: T,
}

impl<T> Deref for Counted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Counted<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

struct Tally {
    target: Arc<Target>,
    amount: u64,
    of: fn(&Target) -> &AtomicU64,
}

impl Tally {
    fn new(target: &Arc<Target>, amount: u64, of: fn(&Target) -> &AtomicU64) -> Tally {
        of(target).fetch_add(amount, Ordering::SeqCst);
        Tally {
            target: Arc::clone(target),
            amount,
            of,
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        (self.of)(&self.target).fetch_sub(self.amount, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_looked_up_at_use() {
        let own = Target::new(GraphCacheMax::Limit(5));
        let unlimited = Target::new(GraphCacheMax::Unlimited);
        let inherits = Target::new(GraphCacheMax::Default);
        let limits = || [own.limit(), unlimited.limit(), inherits.limit()];
        assert_eq!(limits(), [Some(5), None, Some(32)]);
        // No other test reads or sets the default.
        set_default_limit(Some(7));
        assert_eq!(limits(), [Some(5), None, Some(7)]);
        set_default_limit(None);
        assert_eq!((default_limit(), limits()), (None, [Some(5), None, None]));
        set_default_limit(Some(DEFAULT_LIMIT));

        own.set_limit(GraphCacheMax::Unlimited);
        inherits.set_limit(GraphCacheMax::Limit(0));
        unlimited.set_limit(GraphCacheMax::Limit(u64::MAX));
        assert_eq!(limits(), [None, Some(u64::MAX - 2), Some(0)]);
        for target in [&own, &unlimited, &inherits] {
            target.set_limit(GraphCacheMax::Default);
        }
        assert_eq!(limits(), [Some(5), None, Some(32)]);
    }

    /// A site with executables of these stamps, which counts how often it is looked at.
    struct Stamps {
        executables: Mutex<Vec<(u64, Counted<()>)>>,
        looks: Arc<atomic::AtomicUsize>,
    }

    impl Site for Stamps {
        fn oldest(&self) -> Option<u64> {
            self.looks.fetch_add(1, Ordering::Relaxed);
            self.executables
                .lock()
                .unwrap()
                .first()
                .map(|&(stamp, _)| stamp)
        }

        fn try_evict(&self, stamp: u64) -> bool {
            let evicted = self.executables.lock().unwrap().remove(0);
            evicted.0 == stamp
        }

        fn clear(&self) {}
    }

    #[test]
    fn many_sites_are_looked_at_a_few_times_each() {
        const SITES: u64 = 100;
        let target = Arc::new(Target::new(GraphCacheMax::Unlimited));
        let looks = Arc::default();
        let sites: Vec<_> = (0..SITES)
            .map(|site| {
                let stamps = [site, SITES + site, 2 * SITES + site];
                let site = Arc::new(Stamps {
                    executables: Mutex::new(stamps.map(|s| (s, target.count(()))).into()),
                    looks: Arc::clone(&looks),
                });
                target.add(Arc::downgrade(&site) as Weak<dyn Site>);
                site
            })
            .collect();
        target.set_limit(GraphCacheMax::Limit(7));
        let left = sites.iter().map(|site| site.executables.lock().unwrap());
        let left: Vec<_> = left
            .flat_map(|left| left.iter().map(|e| e.0).collect::<Vec<_>>())
            .collect();
        assert_eq!(left, Vec::from_iter(3 * SITES - 7..3 * SITES));
        assert!(looks.load(Ordering::Relaxed) <= 4 * SITES as usize);
    }

    #[test]
    fn what_is_counted() {
        let target = Arc::new(Target::new(GraphCacheMax::Limit(2)));
        assert_eq!((target.stamp(), target.stamp()), (1, 2));
        assert!(target.has_room());
        let mut one = target.count(10);
        *one += 1;
        let two = target.count(20);
        let memory = target.count_staged(4096, "memory");
        assert!(!target.has_room());
        target.counters.launches.add(3);
        let statistics = target.statistics();
        assert_eq!((statistics.executables, statistics.staged_bytes), (2, 4096));
        assert_eq!((statistics.launches, statistics.hits), (3, 0));
        let named: Vec<_> = statistics.iter().filter(|&(_, n)| n > 0).collect();
        assert_eq!(
            named,
            [("launches", 3), ("executables", 2), ("staged_bytes", 4096)]
        );
        assert_eq!((*one, *two, *memory), (11, 20, "memory"));
        drop((one, memory));
        let statistics = target.statistics();
        assert_eq!((statistics.executables, statistics.staged_bytes), (1, 0));
    }
}
