//! What goes wrong with a cloud, by seed.

use bytes::Bytes;
use http::{Method, Request};
use kubewright::World;

/// How often what goes wrong.
pub(crate) struct Faults {
    dice: kubewright::World,
    /// Of a hundred requests.
    percent: usize,
    /// Nothing else but this.
    kind: Option<Fault>,
    /// Only with requests of this method whose path begins so.
    only: Option<(Method, &'static str)>,
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
        Self { dice: World::simulated(seed), percent, kind: None, only: None }
    }

    /// Every request is answered with 500.
    pub(crate) fn always_broken() -> Self {
        Self { kind: Some(Fault::Broken), ..Self::new(0, 100) }
    }

    /// The answer to each request for a new group is lost, once.
    pub(crate) fn lost_creations() -> Self {
        Self {
            kind: Some(Fault::LostAnswer),
            only: Some((Method::POST, "/v2.0/security-groups")),
            ..Self::new(0, 100)
        }
    }

    /// Of a hundred writes of ports, somebody else is faster in `percent`.
    pub(crate) fn overtaken(seed: u64, percent: usize) -> Self {
        Self {
            kind: Some(Fault::Overtaken),
            only: Some((Method::PUT, "/v2.0/ports/")),
            ..Self::new(seed, percent)
        }
    }

    /// Every request is answered with 503 and a Retry-After.
    pub(crate) fn always_busy(retry: u64) -> Self {
        Self { kind: Some(Fault::Busy { status: 503, retry: Some(retry) }), ..Self::new(0, 100) }
    }

    pub(crate) fn roll(&self, request: &Request<Bytes>) -> Option<Fault> {
        let dice = &self.dice.dice;
        if let Some((method, path)) = &self.only
            && (request.method() != method || !request.uri().path().starts_with(path))
        {
            return None;
        }
        if dice.below(100) >= self.percent {
            return None;
        }
        if self.kind.is_some() {
            return self.kind;
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
