//! What is done to a cluster while the body of a test runs under a seed, and what has to hold afterwards.

use std::fmt;

use crate::Cluster;
use crate::harness::{Faults, Test};

/// One run of a test's body, under one seed.
pub(crate) struct Trial {
    seed: u64,
    faults: Faults,
}

/// Why a run failed, where its body did not say so.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Trial {
    /// A run of `test` under `seed`.
    pub(crate) fn new(test: &Test, seed: u64) -> Self {
        Self { seed, faults: test.faults }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The cluster is there, the body comes next: from now on things go wrong.
    pub(crate) async fn begin(&mut self, _cluster: &Cluster) {
        let _ = self.faults;
    }

    /// The body has ended well: nothing goes wrong any more.
    pub(crate) async fn calm(&mut self, _cluster: &Cluster) {}

    /// Whether what has to hold does.
    pub(crate) async fn end(&mut self, _cluster: &Cluster) -> Result<(), Failure> {
        Ok(())
    }

    /// The body, or what has to hold, has failed: what there is to be told of it besides (`None`: the body panicked).
    pub(crate) async fn failed(&self, _cluster: &Cluster, _failure: Option<&Failure>) -> Vec<String> {
        Vec::new()
    }
}
