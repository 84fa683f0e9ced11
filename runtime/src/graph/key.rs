//! The addresses of a call's buffers, and how they lie to each other.
//!
//! An executable graph is found by the full list of addresses that its nodes hold. Two
//! calls with different addresses have one [`Pattern`] if a body that looks at no more
//! than alignment, null and overlap cannot tell them apart.

/// Addresses are compared up to multiples of this: the alignment of device allocations.
pub(crate) const ALIGNMENT: u64 = 256;

/// How the buffers of a call lie: their alignment, which are null, which overlap and by
/// how much. Kept as the addresses of a call that has it.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    addresses: Box<[u64]>,
    sizes: Box<[u64]>,
}

/// Buffers that overlap each other, directly or through others, and so only move together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// The lowest address.
    pub(crate) start: u64,
    /// The number of bytes to the highest one.
    pub(crate) len: u64,
    /// The buffers, each with its distance from `start`.
    pub(crate) members: Vec<(usize, u64)>,
}

impl Pattern {
    /// The pattern of a call, whose buffers have these addresses and sizes in bytes.
    pub(crate) fn of(addresses: &[u64], sizes: &[u64]) -> Pattern {
        assert_eq!(addresses.len(), sizes.len());
        Pattern {
            addresses: addresses.into(),
            sizes: sizes.into(),
        }
    }

    /// The addresses of the call that it was made of.
    pub(crate) fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    /// The sizes of the buffers in bytes.
    pub(crate) fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Whether another call, with buffers of the same sizes, has this pattern.
    pub(crate) fn is_of(&self, addresses: &[u64]) -> bool {
        let own = &*self.addresses;
        own.len() == addresses.len()
            && (0..own.len()).all(|i| {
                let is_alike = (own[i] == 0) == (addresses[i] == 0)
                    && own[i] % ALIGNMENT == addresses[i] % ALIGNMENT;
                is_alike
                    && (own[i] == 0
                        || (0..i).all(|j| {
                            own[j] == 0
                                || own[i].wrapping_sub(own[j])
                                    == addresses[i].wrapping_sub(addresses[j])
                                || !(self.overlap(own, i, j) || self.overlap(addresses, i, j))
                        }))
            })
    }

    /// The buffers that are not null, in groups, ordered by their first buffers.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let mut order: Vec<usize> = (0..self.addresses.len())
            .filter(|&buffer| self.addresses[buffer] != 0)
            .collect();
        order.sort_by_key(|&buffer| self.addresses[buffer]);
        let mut groups: Vec<Group> = Vec::new();
        for buffer in order {
            let address = self.addresses[buffer];
            let end = |group: &Group| group.start.saturating_add(group.len);
            if groups.last().is_none_or(|group| end(group) <= address) {
                groups.push(Group {
                    start: address,
                    len: 0,
                    members: Vec::new(),
                });
            }
            if let Some(group) = groups.last_mut() {
                let offset = address - group.start;
                group.len = group.len.max(offset.saturating_add(self.extent(buffer)));
                group.members.push((buffer, offset));
            }
        }
        for group in &mut groups {
            group.members.sort_unstable();
        }
        groups.sort_by_key(|group| group.members[0].0);
        groups
    }

    fn overlap(&self, addresses: &[u64], i: usize, j: usize) -> bool {
        let end = |k: usize| addresses[k].saturating_add(self.extent(k));
        addresses[i] < end(j) && addresses[j] < end(i)
    }

    /// An empty buffer still has a place, which may be that of another.
    fn extent(&self, buffer: usize) -> u64 {
        self.sizes[buffer].max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u64; 4] = [512, 512, 0, 64];

    fn is_like(own: [u64; 4], other: [u64; 4]) -> bool {
        let is_like = Pattern::of(&own, &SIZES).is_of(&other);
        let back = Pattern::of(&other, &SIZES).is_of(&own);
        assert_eq!(is_like, back, "{own:x?} {other:x?}");
        is_like
    }

    #[test]
    fn disjoint_buffers_may_go_anywhere_of_their_alignment() {
        let own = [0x1000, 0x2000, 0x3000, 0x4010];
        assert!(is_like(own, own));
        assert!(is_like(own, [0x9100, 0x1000, 0x7000, 0x810]));
        // Side by side is not overlap.
        assert!(is_like(own, [0x1000, 0x1200, 0x1400, 0x1510]));
        assert!(!is_like(own, [0x1080, 0x2000, 0x3000, 0x4010]));
        assert!(!is_like(own, [0x1000, 0x2000, 0x3000, 0x4020]));
        assert!(!Pattern::of(&own, &SIZES).is_of(&own[..3]));
    }

    #[test]
    fn overlaps_stay_as_they_are() {
        let same = [0x1000, 0x1000, 0x3000, 0x4000];
        assert!(is_like(same, [0x5000, 0x5000, 0x3000, 0x4000]));
        assert!(!is_like(same, [0x5000, 0x6000, 0x3000, 0x4000]));
        assert!(!is_like(same, [0x5000, 0x5100, 0x3000, 0x4000]));
        let inside = [0x1000, 0x2000, 0x3000, 0x1100];
        assert!(is_like(inside, [0x6000, 0x2000, 0x3000, 0x6100]));
        assert!(!is_like(inside, [0x6000, 0x2000, 0x3000, 0x6000]));
        assert!(!is_like(inside, [0x6000, 0x2000, 0x3000, 0x2100]));
    }

    #[test]
    fn empty_and_null_buffers() {
        let null = [0x1000, 0x2000, 0, 0x4000];
        assert!(is_like(null, [0x2000, 0x1000, 0, 0x4000]));
        assert!(!is_like(null, [0x1000, 0x2000, 0x3000, 0x4000]));
        // An empty buffer at the place of another is told from one that is not.
        let shared = [0x1000, 0x2000, 0x1000, 0x4000];
        assert!(is_like(shared, [0x5000, 0x2000, 0x5000, 0x4000]));
        assert!(!is_like(shared, [0x1000, 0x2000, 0x2000, 0x4000]));
        assert!(!is_like(shared, [0x1000, 0x2000, 0x3000, 0x4000]));
    }

    #[test]
    fn groups_are_what_overlaps() {
        let addresses = [0x2000, 0x9100, 0, 0x2100, 0x8f80, 0x1000];
        let pattern = Pattern::of(&addresses, &[0x180, 64, 64, 0x400, 0x200, 0]);
        assert_eq!(pattern.addresses(), addresses);
        assert_eq!(
            pattern.groups(),
            [
                Group {
                    start: 0x2000,
                    len: 0x500,
                    members: vec![(0, 0), (3, 0x100)],
                },
                Group {
                    start: 0x8f80,
                    len: 0x200,
                    members: vec![(1, 0x180), (4, 0)],
                },
                Group {
                    start: 0x1000,
                    len: 1,
                    members: vec![(5, 0)],
                },
            ]
        );
    }
}
