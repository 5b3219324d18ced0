//! Which of several replicas a key belongs to: the one that scores highest for it (rendezvous hashing).
//!
//! Every replica finds the same answer from the same names, and when one comes or goes only keys of that one move.

use crate::Key;

/// Scores keys for one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat(u64);

impl Seat {
    pub(super) fn of(member: &str) -> Self {
        Self(hash([member.as_bytes()]))
    }

    pub(super) fn score(self, key: Hashed) -> u64 {
        mix(self.0 ^ mix(key.0))
    }
}

/// The hash of a key. It must never change: replicas of two versions work side by side during a roll-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hashed(u64);

impl Hashed {
    pub(super) fn of(key: &Key) -> Self {
        let (namespace, name) =
            (key.namespace.as_deref().unwrap_or_default().as_bytes(), key.name.as_bytes());
        match &key.cluster {
            None => Self(hash([namespace, b"/", name])),
            Some(cluster) => Self(hash([cluster.as_bytes(), b":", namespace, b"/", name])),
        }
    }
}

/// FNV-1a.
fn hash<const N: usize>(parts: [&[u8]; N]) -> u64 {
    let bytes = parts.into_iter().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Spreads what differs in a few bits over all of them (the last steps of `SplitMix64`).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
