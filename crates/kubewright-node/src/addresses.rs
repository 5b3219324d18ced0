//! Addresses of simulated nodes and pods.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::Range;

/// A range of addresses that are given out one after the other; one that is in use is passed over.
#[derive(Debug)]
pub(crate) struct Pool {
    all: Range<u32>,
    /// These are known to be free.
    free: Range<u32>,
}

impl Pool {
    /// 10.1.0.0/16, for nodes: services have 10.0.0.0/24.
    pub(crate) fn of_nodes() -> Self {
        Self::new(Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 255, 255))
    }

    /// 10.128.0.0/9, for pods: eight million, clear of the usual ranges of nodes and services.
    pub(crate) fn of_pods() -> Self {
        Self::new(Ipv4Addr::new(10, 128, 0, 1), Ipv4Addr::new(10, 255, 255, 255))
    }

    fn new(first: Ipv4Addr, end: Ipv4Addr) -> Self {
        let all = first.to_bits()..end.to_bits();
        Self { free: all.start..all.start, all }
    }

    /// The next address. `in_use` is asked only when the addresses known to be free have run out; when every address of
    /// the range is in use, the first is given a second time.
    pub(crate) fn take(&mut self, in_use: impl FnOnce() -> BTreeSet<Ipv4Addr>) -> Ipv4Addr {
        if self.free.is_empty() {
            self.free = self.next_gap(&in_use());
        }
        let address = self.free.start;
        self.free.start += 1;
        Ipv4Addr::from_bits(address)
    }

    /// The first run of free addresses from where the last one ended, then from the start of the range.
    fn next_gap(&self, used: &BTreeSet<Ipv4Addr>) -> Range<u32> {
        let gap = |range: Range<u32>| {
            let taken = used.range(Ipv4Addr::from_bits(range.start)..Ipv4Addr::from_bits(range.end));
            let mut start = range.start;
            for address in taken {
                if address.to_bits() > start {
                    return start..address.to_bits();
                }
                start = address.to_bits() + 1;
            }
            start..range.end
        };
        let after = gap(self.free.start..self.all.end);
        if !after.is_empty() {
            return after;
        }
        let before = gap(self.all.start..self.free.start);
        if before.is_empty() { self.all.start..self.all.start + 1 } else { before }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(last: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(last)
    }

    #[test]
    fn addresses_follow_one_another_and_those_in_use_are_passed_over() {
        let mut pool = Pool::of_pods();
        let used = BTreeSet::from([Ipv4Addr::new(10, 128, 0, 1), Ipv4Addr::new(10, 128, 0, 3)]);
        let taken: Vec<_> = (0..3).map(|_| pool.take(|| used.clone()).octets()).collect();
        assert_eq!(taken, [[10, 128, 0, 2], [10, 128, 0, 4], [10, 128, 0, 5]]);
    }

    proptest! {
        #[test]
        fn no_address_is_given_twice_while_another_is_free(
            frees in proptest::collection::vec(any::<bool>(), 1..80),
        ) {
            let mut pool = Pool::new(address(10), address(30));
            let mut used = BTreeSet::new();
            for free in frees {
                if free {
                    used.pop_first();
                }
                let full = used.len() == 20;
                let taken = pool.take(|| used.clone());
                prop_assert!((10..30).contains(&taken.to_bits()));
                prop_assert!(full || used.insert(taken), "{taken} was in use");
            }
        }
    }
}
