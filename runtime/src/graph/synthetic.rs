//! Made-up addresses, to find out where a body's graph holds addresses and what else
//! depends on them.
//!
//! A body captured with several such sets must show every dependence on an address, so
//! the sets are chosen to differ in all that a body could look at beyond the pattern:
//! - 1 is anywhere, in ascending order; 2 has every bit of an address (above alignment)
//!   inverted, so that whatever one bit decides, and what is kept of a truncated or
//!   shifted address, is another, and the order is reversed;
//! - 3 is packed tightly, as real buffers may be, in the order of the call: what lies
//!   side by side, or near enough for 32 bits, shows here;
//! - 4 is anywhere, in any order.
//!
//! Distances between buffers differ in all of them. The four ranges are apart from each
//! other and from all addresses that a GPU has, which are below 2^57.

use super::key::{ALIGNMENT, Group, Pattern};
use super::random::Random;

/// How many sets there are.
pub(crate) const NUM_SETS: usize = 4;

/// Real addresses end below, made-up ones begin here.
const START: u64 = 1 << 61;
/// The most that the buffers of a call may take, so that there is much more room.
const MOST: u64 = 1 << 56;

/// Sets of addresses with a call's pattern: as aligned, null where it has null, overlapping
/// where it overlaps. None if the call's addresses are none that a GPU has.
pub(crate) fn sets(pattern: &Pattern) -> Option<[Vec<u64>; NUM_SETS]> {
    let groups = pattern.groups();
    let mut total = 0_u64;
    for group in &groups {
        let is_real = group.start.checked_add(group.len)? <= START;
        total = total.checked_add(group.len.checked_add(ALIGNMENT)?)?;
        if !is_real || total > MOST {
            return None;
        }
    }
    let mut random = Random::new(groups.len() as u64);
    let mut order: Vec<usize> = (0..groups.len()).collect();

    // In eighths of the address space: 2, 5 (its inverse), 6 and 7, 1.
    let first = scatter(&groups, &order, 2 * START, &mut random);
    let second = first
        .iter()
        .map(|start| !start & !(ALIGNMENT - 1))
        .collect();
    let third = pack(&groups, 6 * START + random.below(START));
    random.shuffle(&mut order);
    let fourth = scatter(&groups, &order, START, &mut random);
    Some([first, second, third, fourth].map(|starts| addresses(pattern, &groups, &starts)))
}

/// Places for the groups in this order, far from each other, within 2^61 bytes.
fn scatter(groups: &[Group], order: &[usize], start: u64, random: &mut Random) -> Vec<u64> {
    let gap = (START - MOST) / (groups.len() as u64 + 1);
    let mut starts = vec![0; groups.len()];
    let mut free = start;
    for &group in order {
        free += gap / 2 + random.below(gap / 2);
        free -= free % ALIGNMENT;
        starts[group] = free;
        // One more, for the alignment that `addresses` adds.
        free += groups[group].len + ALIGNMENT;
    }
    starts
}

/// Places without room between.
fn pack(groups: &[Group], start: u64) -> Vec<u64> {
    let mut free = start;
    groups
        .iter()
        .map(|group| {
            let shift = group.start % ALIGNMENT;
            let before = free % ALIGNMENT;
            free -= before;
            if before > shift {
                free += ALIGNMENT;
            }
            let start = free;
            free += shift + group.len;
            start
        })
        .collect()
}

/// The addresses of all buffers, if the groups are at these multiples of the alignment
/// plus what their own start is off.
fn addresses(pattern: &Pattern, groups: &[Group], starts: &[u64]) -> Vec<u64> {
    let mut addresses = vec![0; pattern.addresses().len()];
    for (group, start) in groups.iter().zip(starts) {
        for &(buffer, offset) in &group.members {
            addresses[buffer] = start + group.start % ALIGNMENT + offset;
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random real calls: null, empty, shared, overlapping and unaligned buffers.
    fn pattern(random: &mut Random) -> Pattern {
        let count = random.below(12) as usize;
        let mut addresses: Vec<u64> = Vec::new();
        let mut sizes = Vec::new();
        for i in 0..count {
            sizes.push([0, 4, 256, 1000, 1 << 20, 1 << 38][random.below(6) as usize]);
            let old = addresses.get(random.below(12) as usize).copied();
            addresses.push(match (random.below(6), old) {
                (0, _) => 0,
                (1, Some(old)) => old,
                (2, Some(old)) if old > 0 => old + random.below(600),
                _ => (0x7f00 << 32) + ((i as u64) << 39) + 16 * random.below(4096),
            });
        }
        Pattern::of(&addresses, &sizes)
    }

    #[test]
    fn all_sets_have_the_pattern_of_the_call() {
        for seed in 0..3000 {
            let mut random = Random::new(seed);
            let pattern = pattern(&mut random);
            let sets = sets(&pattern).unwrap();
            for set in &sets {
                assert!(pattern.is_of(set), "{seed}: {pattern:x?} {set:x?}");
            }
            let groups = pattern.groups();
            let starts: Vec<Vec<u64>> = sets
                .iter()
                .map(|set| groups.iter().map(|g| set[g.members[0].0]).collect())
                .collect();
            let end = |buffer: usize, set: &[u64]| set[buffer] + pattern.sizes()[buffer];
            let ranges = sets.each_ref().map(|set| {
                let used = (0..set.len()).filter(|&buffer| set[buffer] != 0);
                let low = used.clone().map(|buffer| set[buffer]).min();
                let high = used.map(|buffer| end(buffer, set)).max();
                (low.unwrap_or(START), high.unwrap_or(START))
            });
            for (i, (low, high)) in ranges.into_iter().enumerate() {
                assert!(START <= low && low <= high);
                for other in &ranges[..i] {
                    assert!(groups.is_empty() || high < other.0 || other.1 < low);
                }
            }
            for group in 0..groups.len() {
                // The lowest address, which the first buffer need not have.
                let first = |set: usize| starts[set][group] - groups[group].members[0].1;
                assert_eq!(first(0) ^ first(1), !(ALIGNMENT - 1));
                for other in 0..group {
                    let apart = |set: usize| starts[set][group].wrapping_sub(starts[set][other]);
                    for (one, two) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
                        assert_ne!(apart(one), apart(two), "{seed}: {sets:x?}");
                    }
                    assert!(apart(0) as i64 > 0 && (apart(1) as i64) < 0);
                    assert!(apart(2) as i64 > 0);
                }
            }
        }
    }

    #[test]
    fn the_third_set_is_side_by_side() {
        let [.., third, _] = sets(&Pattern::of(&[0x900, 0x100, 0x500], &[512, 256, 64])).unwrap();
        assert_eq!(third[1] - third[0], 512);
        assert_eq!(third[2] - third[1], 256);
    }

    #[test]
    fn addresses_that_no_gpu_has_are_not_imitated() {
        assert!(sets(&Pattern::of(&[START - 4], &[4])).is_some());
        for (address, size) in [
            (START, 0),
            (START - 4, 5),
            (u64::MAX, 4),
            (1 << 40, MOST),
            (1 << 40, u64::MAX),
        ] {
            assert!(sets(&Pattern::of(&[address], &[size])).is_none());
        }
        assert!(sets(&Pattern::of(&[], &[])).is_some());
        assert_eq!(sets(&Pattern::of(&[0], &[4])).unwrap(), [[0]; 4]);
    }
}
