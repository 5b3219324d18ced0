//! What checks look at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kubewright_cluster::admin::AnsweredRequest;
use kubewright_cluster::recording::{Recording, Write};
use kubewright_store::{Name, Revision};

use super::anew::Anew;
use crate::faults::OPERATORS;

/// Whose service accounts are those of built-in controllers.
const BUILT_IN: &str = "system:serviceaccount:kube-system:";

/// Who has made what the test has made.
pub(crate) const TEST: &str = "kubernetes-admin";

/// Some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// When it began.
    pub(crate) from: Timestamp,
    /// When it was over.
    pub(crate) to: Timestamp,
}

impl Span {
    /// Whether a moment lies in it, its beginning left out.
    pub(crate) fn has(&self, time: Timestamp) -> bool {
        self.from < time && time <= self.to
    }
}

/// A cluster from which all that the test had made was deleted.
#[derive(Debug, Default)]
pub(crate) struct Emptied {
    /// What the test had made, and is not gone.
    pub(crate) stuck: Vec<Arc<Write>>,
    /// What operators had made, and is still there.
    pub(crate) left: Vec<Arc<Write>>,
    /// What of that was made again after it had been taken away, too: the operators want it for themselves.
    pub(crate) missed: BTreeSet<(Name, Name)>,
}

/// All there is to look at.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// What was written.
    pub(crate) recording: Recording,
    /// What operators have asked for, oldest first.
    pub(crate) requests: Vec<AnsweredRequest>,
    /// What was there before the test.
    pub(crate) begun: Revision,
    /// When the operators' watches may have told them what was no longer so.
    pub(crate) stale: Vec<Span>,
    /// When the operators were started anew, with nothing to do.
    pub(crate) passes: Vec<Span>,
    /// Whether an operator would have looked again by itself before that: a key waited for its time.
    pub(crate) looks_again: bool,
    /// A time in which nothing happened.
    pub(crate) rest: Option<Span>,
    /// What was left in the end.
    pub(crate) emptied: Emptied,
    /// When its objects were made again.
    pub(crate) anew: Anew,
}

impl Evidence {
    /// What was written since the test began.
    pub(crate) fn writes(&self) -> &[Arc<Write>] {
        self.recording.after(self.begun)
    }

    /// What operators wrote in a span that counts as work.
    pub(crate) fn work(&self, span: Span) -> impl Iterator<Item = &Arc<Write>> {
        let writes = self.writes().iter();
        writes.filter(move |write| {
            span.has(write.time) && is_operator(&write.by.user) && is_work(&write.collection)
        })
    }
}

/// Whether a user is an operator.
pub(crate) fn is_operator(user: &str) -> bool {
    user.starts_with(OPERATORS.trim_end_matches('*')) && !user.starts_with(BUILT_IN)
}

/// Whether writes of a collection are work: of who leads and of what has happened, none are.
pub(crate) fn is_work(collection: &str) -> bool {
    !matches!(collection, "coordination.k8s.io/leases" | "/events" | "events.k8s.io/events")
}

/// The resource of a request as collections are called.
pub(super) fn collection(request: &AnsweredRequest) -> String {
    format!("{}/{}", request.info.group, request.info.resource)
}

/// What there is most of, with how often.
pub(super) fn most<T: Ord>(all: impl Iterator<Item = T>) -> Option<(T, usize)> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_insert(0) += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count)
}

#[cfg(test)]
pub(super) mod stories;
