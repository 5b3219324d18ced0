//! Addresses for pods: of the machine's loopback network, all of which every process can listen on.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::Ipv4Addr;

/// The address of every node, and of its pods on the machine's own network. It is none of theirs alone: a machine is one,
/// whatever is called a node of it.
pub const NODE_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 1);
/// 127.64.0.0/10, less its first address, its last one and that of nodes.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 2);
const LAST: Ipv4Addr = Ipv4Addr::new(127, 127, 255, 254);

/// Who has which address.
#[derive(Debug)]
pub(crate) struct Addresses {
    taken: BTreeMap<Ipv4Addr, String>,
    next: Ipv4Addr,
}

/// How many addresses a node has before it comes to those where another one on this machine may begin.
const BLOCK: u32 = 256;

impl Addresses {
    /// Those of the node with this uid. Each node begins elsewhere: pods of two nodes, or of two clusters, that run on this
    /// machine are not told the same address, where the second to listen at a port would be refused. The uid alone says where, as
    /// what a seed does is the same in each process.
    pub(crate) fn of_node(uid: &str) -> Self {
        let blocks = (LAST.to_bits() - FIRST.to_bits()) / BLOCK;
        // The first digits of a uid are chance.
        let digits = uid.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default();
        Self { taken: BTreeMap::new(), next: Ipv4Addr::from_bits(FIRST.to_bits() + digits % blocks * BLOCK) }
    }

    /// The address of the pod with this uid: the one that it had before, where that is still free, else one that nobody
    /// has had for long. `None` when all four million are taken.
    pub(crate) fn give(&mut self, uid: &str, before: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
        let before = before.filter(|address| (FIRST..=LAST).contains(address));
        if let Some(address) = before
            && self.taken.get(&address).is_none_or(|owner| owner == uid)
        {
            self.taken.insert(address, uid.to_owned());
            return Some(address);
        }
        let start = self.next;
        loop {
            let address = self.next;
            self.next = if address == LAST { FIRST } else { Ipv4Addr::from_bits(address.to_bits() + 1) };
            if let Entry::Vacant(free) = self.taken.entry(address) {
                free.insert(uid.to_owned());
                return Some(address);
            }
            if self.next == start {
                return None;
            }
        }
    }

    /// The pod has gone.
    pub(crate) fn free(&mut self, uid: &str) {
        self.taken.retain(|_, owner| owner != uid);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nodes_begin_with_addresses_of_their_own() {
        let first = |uid: &str| Addresses::of_node(uid).give("a", None).expect("one is free");
        let firsts: BTreeSet<_> = (0..100)
            .map(|number| first(&format!("{:08x}-0000-4000-8000-000000000000", number * 40_503_u32)))
            .collect();
        assert!(firsts.len() > 95, "{firsts:?}");
        assert!(firsts.iter().all(|address| (FIRST..=LAST).contains(address)));
        assert_eq!(first("no uid"), FIRST);
    }

    #[test]
    fn pods_have_addresses_of_their_own_and_keep_them() {
        let mut addresses = Addresses { taken: BTreeMap::new(), next: FIRST };
        assert_eq!(addresses.give("a", None), Some(FIRST));
        assert_eq!(addresses.give("b", None), Some(Ipv4Addr::new(127, 64, 0, 3)));
        let other = Ipv4Addr::new(127, 64, 0, 9);
        assert_eq!(addresses.give("c", Some(other)), Some(other));
        assert_eq!(addresses.give("d", Some(other)), Some(Ipv4Addr::new(127, 64, 0, 4)), "it is taken");
        addresses.free("a");
        assert_eq!(addresses.give("e", None), Some(Ipv4Addr::new(127, 64, 0, 5)), "not at once again");
        assert_eq!(addresses.give("f", Some(Ipv4Addr::new(10, 0, 0, 1))), Some(Ipv4Addr::new(127, 64, 0, 6)));
    }
}
