//! Making the objects of a test again, after all of them were deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, PostParams};
use kube::core::DynamicObject;
use kubewright_cluster::recording::{Did, Recording, Write};
use kubewright_store::Revision;
use serde_json::Value;

use super::SeedRun;
use super::final_checks::{api, delete, places, there};
use crate::Cluster;
use crate::checks::{self, TEST};

/// How often they are made at most: the second time shows what is another each time.
const TIMES: usize = 2;
/// For so long what was deleted may take to go.
const GRACE: Duration = Duration::from_secs(60);
/// The collection of definitions, without which nothing of theirs is stored.
const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// An object as the test wants it, and what its uid was.
struct Wanted {
    write: Arc<Write>,
    object: Value,
}

impl SeedRun {
    /// Has operators make everything from scratch, in a cluster in which nothing of the test is left.
    pub(super) async fn make_anew(&mut self, cluster: &Cluster) {
        let emptied = &self.evidence.emptied;
        let is_left = !emptied.stuck.is_empty() || emptied.left.len() > emptied.missed.len();
        if is_left || cluster.has_history() || cluster.operators().is_empty() {
            return;
        }
        let Some(wanted) =
            wanted(&self.evidence.recording.at(self.evidence.anew.before), self.evidence.begun)
        else {
            return;
        };
        for _ in 0..TIMES {
            // Pods take their time to go.
            cluster.without_loops(cluster.advance(GRACE)).await;
            if !create(cluster, &wanted).await || !cluster.settle_with_failures().await.is_empty() {
                self.evidence.anew.after.clear();
                return;
            }
            self.evidence.anew.after.push(cluster.revision());
            self.evidence.recording = cluster.recording().unwrap_or_default();
            if checks::differences_anew(&self.evidence).is_empty() {
                return;
            }
            let made: BTreeSet<_> = places(wanted.iter().map(|one| &one.write));
            for write in there(&cluster.recording().unwrap_or_default(), &made).iter().rev() {
                delete(cluster, write).await;
            }
            cluster.settle().await;
        }
    }
}

/// What the test had made and was there, oldest first; none where that cannot be made again.
fn wanted(recording: &Recording, begun: Revision) -> Option<Vec<Wanted>> {
    let is_made = |write: &&Arc<Write>| write.by.user == TEST && write.did == Did::Create;
    let made = places(recording.after(begun).iter().filter(is_made));
    let mut last: Vec<_> =
        recording.objects().into_iter().filter(|(place, _)| made.contains(place)).collect();
    let came = |write: &Write| {
        let of = recording.of(&write.collection, &write.key).filter(|one| one.did == Did::Create);
        of.map(|one| one.revision).max()
    };
    last.sort_by_key(|(_, write)| came(write));
    let uids: Vec<Value> = last.iter().map(|(_, write)| write.object()["metadata"]["uid"].clone()).collect();
    let is_ours = |owner: &Value| uids.contains(&owner["uid"]);
    let mut wanted = Vec::new();
    for (_, write) in last {
        let object = write.object();
        let owners = object["metadata"]["ownerReferences"].as_array();
        let is_again = *write.collection != *DEFINITIONS
            && !is_reported_by_test(recording, &write)
            && object["metadata"]["deletionTimestamp"].is_null()
            && owners.is_none_or(|owners| owners.iter().all(is_ours));
        if !is_again {
            return None;
        }
        let object = as_wanted(recording, &write, object);
        wanted.push(Wanted { write, object });
    }
    (!wanted.is_empty()).then_some(wanted)
}

/// Whether the test has written the status of an object, as a kubelet or another operator would.
fn is_reported_by_test(recording: &Recording, last: &Write) -> bool {
    let mut before = Value::Null;
    recording.of(&last.collection, &last.key).any(|write| {
        let status = write.object()["status"].take();
        let was = std::mem::replace(&mut before, status.clone());
        write.by.user == TEST && write.did == Did::Update && status != was
    })
}

/// An object as the test has asked for it: of its labels and annotations those that the test has set.
fn as_wanted(recording: &Recording, last: &Write, mut object: Value) -> Value {
    let since = recording.of(&last.collection, &last.key).filter(|one| one.did == Did::Create);
    let since = since.map(|one| one.revision).max();
    let mut maps = [("labels", BTreeMap::new()), ("annotations", BTreeMap::new())];
    let mut before = Value::Null;
    for write in recording.of(&last.collection, &last.key).filter(|one| Some(one.revision) >= since) {
        let after = write.object();
        // A node that a fault took away is made again as it was, by the fault.
        let is_wanted = write.by.user == TEST || write.did == Did::Create;
        for (map, wanted) in maps.iter_mut().filter(|_| is_wanted) {
            let entries =
                |object: &Value| object["metadata"][&**map].as_object().cloned().unwrap_or_default();
            let (was, is) = (entries(&before), entries(&after));
            for name in was.keys().filter(|name| !is.contains_key(*name)) {
                wanted.remove(name);
            }
            wanted.extend(is.into_iter().filter(|(name, value)| was.get(name) != Some(value)));
        }
        before = after;
    }
    let metadata = &object["metadata"];
    let mut kept = serde_json::Map::new();
    for field in ["name", "namespace", "ownerReferences"] {
        if !metadata[field].is_null() {
            kept.insert(field.to_owned(), metadata[field].clone());
        }
    }
    for (map, wanted) in maps {
        if !wanted.is_empty() {
            kept.insert(map.to_owned(), wanted.into_iter().collect::<serde_json::Map<_, _>>().into());
        }
    }
    object["metadata"] = kept.into();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object
}

/// Creates them in their order, with the uids that their owners have now; whether the API server has taken all.
async fn create(cluster: &Cluster, wanted: &[Wanted]) -> bool {
    let mut uids: BTreeMap<String, String> = BTreeMap::new();
    for one in wanted {
        let mut object = one.object.clone();
        for owner in object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
            if let Some(uid) = owner["uid"].as_str().and_then(|uid| uids.get(uid)) {
                owner["uid"] = uid.clone().into();
            }
        }
        let Some(api): Option<Api<DynamicObject>> = api(cluster, &one.write) else { return false };
        let Ok(object) = kubewright_objects::from_value::<DynamicObject>(object) else { return false };
        let Ok(made) = api.create(&PostParams::default(), &object).await else { return false };
        let was = one.write.object()["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        uids.insert(was, made.metadata.uid.unwrap_or_default());
    }
    true
}
