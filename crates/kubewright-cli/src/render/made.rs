//! What a program made, by the journal of its control plane.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_cluster::{
    Cluster,
    admin::Match,
    recording::{Did, Recording},
};
use kubewright_trial::story::LEASES;
use serde_json::Value;

/// An object, as it is at the end.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// `apps/deployments`.
    pub(super) collection: String,
    pub(super) object: Value,
}

/// Collection and key of an object.
pub(super) type Place = (String, String);

/// What is there at the end, and what of it a program wrote.
#[derive(Debug, Default)]
pub(super) struct End {
    objects: BTreeMap<Place, Value>,
    /// Those that it wrote, whether they are still there or not.
    pub(super) written: BTreeSet<Place>,
}

impl End {
    /// Of a program that wrote as a user after the revision `since`, in a cluster that began with `past`. The journal names who writes.
    pub(super) fn of(cluster: &Cluster, user: &str, since: u64, past: Option<&Recording>) -> Self {
        let mut end = Self::default();
        for (place, write) in past.map(Recording::objects).unwrap_or_default() {
            end.objects.insert((place.0.to_string(), place.1.to_string()), write.object());
        }
        let Some(journal) = cluster.journal() else { return end };
        for one in journal.written(|_| true) {
            let place = (one.collection.to_string(), one.key.to_string());
            let is_theirs = one.by.as_ref().is_some_and(|by| by.user == user) && one.revision.0 > since;
            if is_theirs && &*one.collection != LEASES {
                end.written.insert(place.clone());
            }
            if Did::from(one.happening) == Did::Delete {
                end.objects.remove(&place);
            } else if let Ok(object) = serde_json::from_slice(&one.bytes) {
                end.objects.insert(place, object);
            }
        }
        end
    }

    /// Those of these objects that are there.
    pub(super) fn made(&self, places: &BTreeSet<Place>) -> Vec<Made> {
        let there = places.iter().filter_map(|place| Some((place, self.objects.get(place)?)));
        there
            .map(|((collection, _), object)| Made { collection: collection.clone(), object: object.clone() })
            .collect()
    }
}

/// The requests of a user, as the server's log has them.
fn requests(cluster: &Cluster, user: &str) -> Vec<Value> {
    let wanted = Match { user: Some(user.to_owned()), ..Match::default() };
    let Some(admin) = cluster.admin() else { return Vec::new() };
    let requests = admin.requests(&wanted, 10_000).requests;
    requests.iter().filter_map(|one| serde_json::to_value(one).ok()).collect()
}

/// What the program was refused for want of rights, each in a line.
pub(crate) fn refused(cluster: &Cluster, user: &str) -> Vec<String> {
    let refused = requests(cluster, user).into_iter().filter(|one| one["code"] == 403);
    let mut lines: Vec<String> = refused.map(|one| line(&one)).collect();
    lines.sort();
    lines.dedup();
    lines
}

fn line(request: &Value) -> String {
    let text = |key: &str| request[key].as_str().unwrap_or_default();
    let group = if text("group").is_empty() { String::new() } else { format!(".{}", text("group")) };
    let sub =
        if text("subresource").is_empty() { String::new() } else { format!("/{}", text("subresource")) };
    format!("the program may not {} {}{group}{sub}: its role lacks that", text("verb"), text("resource"))
}
