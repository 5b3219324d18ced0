//! What goes wrong with a cloud, by seed.

use bytes::Bytes;
use http::{Method, Request};
use kubewright::World;

/// How often what goes wrong.
pub(crate) struct Faults {
    dice: kubewright::World,
    /// Of a hundred requests.
    percent: usize,
}

/// Something that goes wrong with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// 429 or 503, with or without a Retry-After.
    Busy { status: u16, retry: Option<u64> },
    /// 500.
    Broken,
    /// It never arrives.
    Unreachable,
    /// It is carried out and its answer lost.
    LostAnswer,
    /// It is carried out and its answer takes longer than anybody waits.
    Slow,
    /// All tokens are no good any more.
    Revoked,
    /// Somebody else writes all ports just before.
    Overtaken,
}

impl Faults {
    /// Of a hundred requests, `percent` go wrong.
    pub(crate) fn new(seed: u64, percent: usize) -> Self {
        Self { dice: World::simulated(seed), percent }
    }

    pub(crate) fn roll(&mut self, request: &Request<Bytes>) -> Option<Fault> {
        let dice = &self.dice.dice;
        if dice.below(100) >= self.percent {
            return None;
        }
        let retry = [None, Some(1), Some(3)][dice.below(3)];
        Some(match dice.below(14) {
            0 => Fault::Busy { status: 429, retry },
            1 | 2 => Fault::Busy { status: 503, retry },
            3 => Fault::Broken,
            4 | 5 => Fault::Unreachable,
            6..=8 => Fault::LostAnswer,
            9 => Fault::Slow,
            10 => Fault::Revoked,
            _ if request.method() == Method::PUT => Fault::Overtaken,
            _ => Fault::LostAnswer,
        })
    }
}
