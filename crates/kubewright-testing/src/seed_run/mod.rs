//! What is done to a cluster while the body of a test runs under a seed, and what has to hold afterwards.

mod anew;
mod final_checks;

use std::collections::BTreeSet;
use std::fmt;

use kubewright_cluster::recording::Recording;
use kubewright_store::Revision;

use crate::checks::{self, Check, Evidence, Finding};
use crate::faults::FaultKind;
use crate::harness::{Caught, Test};
use crate::{Cluster, record};

/// One run of a test's body, under one seed.
pub(crate) struct SeedRun {
    test: Test,
    seed: u64,
    kinds: BTreeSet<FaultKind>,
    begun: Revision,
    evidence: Evidence,
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

impl From<Finding> for Failure {
    fn from(finding: Finding) -> Self {
        Self(finding.to_string())
    }
}

impl SeedRun {
    /// A run of `test` under `seed`, with faults of these kinds.
    pub(crate) fn new(test: &Test, seed: u64, kinds: BTreeSet<FaultKind>) -> Self {
        Self { test: *test, seed, kinds, begun: Revision(0), evidence: Evidence::default() }
    }

    /// Whether anything may go wrong, and what has to hold is looked at.
    fn is_under_faults(&self) -> bool {
        self.test.faults.are_wanted()
    }

    /// The cluster is there, the body comes next: from now on things go wrong.
    pub(crate) async fn begin(&mut self, cluster: &Cluster) {
        self.begun = cluster.revision();
        if self.is_under_faults() {
            cluster.injector().begin(cluster, self.seed, self.kinds.clone()).await;
        }
    }

    /// The body has ended well: nothing goes wrong any more.
    pub(crate) async fn end_faults(&mut self, cluster: &Cluster) {
        cluster.injector().end(cluster).await;
    }

    /// Whether what has to hold does.
    pub(crate) async fn end(&mut self, cluster: &Cluster) -> Result<(), Failure> {
        if !self.is_under_faults() {
            return cluster.ledger().failure().map_or(Ok(()), |why| Err(Failure::new(why)));
        }
        self.evidence.begun = self.begun;
        self.evidence.stale = cluster.injector().stale();
        cluster.settle().await;
        self.look(cluster, checks::SETTLED)?;
        self.look_again(cluster).await?;
        self.look(cluster, checks::SEEN)?;
        self.rest(cluster).await;
        self.look(cluster, checks::RESTED)?;
        self.evidence.anew.before = cluster.revision();
        self.empty(cluster).await;
        self.look(cluster, checks::EMPTIED)?;
        if let Some(why) = cluster.ledger().failure() {
            return Err(Failure::new(why));
        }
        self.make_anew(cluster).await;
        self.look(cluster, checks::ANEW)
    }

    /// Judges what there is by now.
    fn look(&mut self, cluster: &Cluster, checks: &[Check]) -> Result<(), Failure> {
        let recording = cluster.recording();
        self.evidence.recording =
            recording.ok_or_else(|| Failure::new("too much was written to be judged"))?;
        self.evidence.requests = cluster.requests_of_operators();
        checks::judge(checks, &self.evidence).map_or(Ok(()), |finding| Err(finding.into()))
    }

    /// The body, or what has to hold, has failed: what there is to be told of it besides.
    pub(crate) fn failed(&self, cluster: &Cluster, failure: &Caught) -> Vec<String> {
        let mut lines = Vec::new();
        for (wave, plan) in cluster.injector().plans().iter().enumerate() {
            lines.push(format!("what went wrong, wave {wave}:\n{plan}"));
        }
        let why = failure.to_string();
        let notes =
            [vec![format!("{} under seed {}", self.test.path(), self.seed), why], lines.clone()].concat();
        let Some(recording) = cluster.recording() else { return lines };
        lines.push(match record::keep(&self.test.path(), self.seed, notes, &recording, cluster.admin()) {
            Ok(path) => {
                format!("to look at the cluster as it is now: kubewright up --from {}", path.display())
            }
            Err(error) => format!("the recording cannot be kept: {error}"),
        });
        lines
    }
}

impl Cluster {
    /// All that was written so far, to be looked through or [kept](Recording::write); `None` when it was too much to
    /// remember.
    #[must_use]
    pub fn recording(&self) -> Option<Recording> {
        self.journal().and_then(Recording::of_journal)
    }
}
