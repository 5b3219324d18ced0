//! What is done to a cluster in which all has come to rest: its operators see it again, nothing happens for a while, and
//! all that the test has made is deleted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, TypeMeta};
use kube::core::GroupVersionKind;
use kubewright_cluster::admin::AnsweredRequest;
use kubewright_cluster::recording::{Did, Recording, Write};
use kubewright_store::Name;

use super::{Failure, SeedRun};
use crate::Cluster;
use crate::checks::{self, Emptied, Span, TEST, is_operator, is_work};
use crate::faults::operators;

/// How often a write of operators that see nothing new has to be there, to be no chance.
const PASSES: usize = 3;
/// A key that waits for its time no longer than this is looked at again by itself.
const LATER: Duration = Duration::from_hours(24 * 366);
/// For how long nothing happens.
const REST: Duration = Duration::from_secs(180);

impl SeedRun {
    /// Has the operators start anew, with nothing to do. More than once only if they have done something.
    pub(super) async fn look_again(&mut self, cluster: &Cluster) -> Result<(), Failure> {
        self.evidence.looks_again = cluster.operators().iter().any(|operator| !operator.is_at_rest(LATER));
        let mut found = Ok(());
        for _ in 0..PASSES {
            let from = cluster.world().clock.now();
            cluster.start_operators_anew().await;
            cluster.settle().await;
            self.evidence.passes.push(Span { from, to: cluster.world().clock.now() });
            found = self.look(cluster, checks::AGAIN);
            if found.is_ok() {
                break;
            }
        }
        found
    }

    /// Lets time pass in which nothing happens.
    pub(super) async fn rest(&mut self, cluster: &Cluster) {
        let from = cluster.world().clock.now();
        cluster.without_loops(cluster.advance(REST)).await;
        self.evidence.rest = Some(Span { from, to: cluster.world().clock.now() });
    }

    /// Deletes all that the test has made, while things go wrong once more, and then what is left of what operators have made for it.
    pub(super) async fn empty(&mut self, cluster: &Cluster) {
        let made = |write: &Write| write.by.user == TEST && write.did == Did::Create;
        let made: BTreeSet<_> = places(self.evidence.writes().iter().filter(|write| made(write)));
        cluster.injector().wave(cluster).await;
        for write in there(&cluster.recording().unwrap_or_default(), &made).iter().rev() {
            delete(cluster, write).await;
        }
        cluster.settle().await;
        let stuck = there(&cluster.recording().unwrap_or_default(), &made);

        let theirs = |write: &Write| is_operator(&write.by.user) && is_work(&write.collection);
        let created = |write: &Write| write.did == Did::Create && theirs(write);
        let recording = cluster.recording().unwrap_or_default();
        let created: BTreeSet<_> = places(recording.after(self.begun).iter().filter(|write| created(write)));
        let left = there(&recording, &created);
        let mut missed = BTreeSet::new();
        if stuck.is_empty() && !left.is_empty() {
            for write in &left {
                delete(cluster, write).await;
            }
            cluster.start_operators_anew().await;
            cluster.settle().await;
            missed = places(there(&cluster.recording().unwrap_or_default(), &created).iter());
        }
        let left = if stuck.is_empty() { left } else { Vec::new() };
        self.evidence.emptied = Emptied { stuck, left, missed };
    }
}

/// Where writes were made.
pub(super) fn places<'a>(writes: impl Iterator<Item = &'a Arc<Write>>) -> BTreeSet<(Name, Name)> {
    writes.map(|write| (Arc::clone(&write.collection), Arc::clone(&write.key))).collect()
}

/// What is there of some places, in the order in which it came to be what it is.
pub(super) fn there(recording: &Recording, places: &BTreeSet<(Name, Name)>) -> Vec<Arc<Write>> {
    let objects = recording.objects().into_iter();
    let mut found: Vec<_> =
        objects.filter(|(place, _)| places.contains(place)).map(|(_, write)| write).collect();
    found.sort_by_key(|write| write.revision);
    found
}

/// Deletes an object, as the administrator; if it is not there any more, so be it.
pub(super) async fn delete(cluster: &Cluster, write: &Write) {
    if let Some(api) = api(cluster, write) {
        let _ = api.delete(write.name(), &DeleteParams::background()).await;
    }
}

/// The API of an object's kind, as the administrator.
pub(super) fn api(cluster: &Cluster, write: &Write) -> Option<Api<DynamicObject>> {
    let object = write.object();
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let types = TypeMeta { api_version: text("apiVersion"), kind: text("kind") };
    let kind = GroupVersionKind::try_from(&types).ok()?;
    let plural = write.collection.rsplit('/').next().unwrap_or_default();
    let kind = ApiResource::from_gvk_with_plural(&kind, plural);
    Some(match write.namespace() {
        "" => Api::all_with(cluster.client(), &kind),
        namespace => Api::namespaced_with(cluster.client(), namespace, &kind),
    })
}

impl Cluster {
    /// What operators have asked for, as far as it is kept.
    pub(super) fn requests_of_operators(&self) -> Vec<AnsweredRequest> {
        self.admin().map(|admin| admin.requests(&operators(), usize::MAX).requests).unwrap_or_default()
    }

    /// As in a rolling update of all that run.
    async fn start_operators_anew(&self) {
        self.restart_ended().await;
        for operator in self.operators().iter().filter(|operator| operator.is_running()) {
            operator.restart().await;
        }
    }
}
