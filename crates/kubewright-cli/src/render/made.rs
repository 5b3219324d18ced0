//! What a program made, by the journal of its control plane.

use std::collections::BTreeMap;

use kubewright_cluster::{Cluster, admin::Match, journal::Written, recording::Did};
use serde_json::Value;

/// An object that the program wrote, as it is at the end.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// `apps/deployments`.
    pub(super) collection: String,
    pub(super) object: Value,
}

/// The objects that a program wrote as a user after the revision `since`, and that are there at the end, each as it is then.
///
/// The journal names who writes.
pub(super) fn by(cluster: &Cluster, user: &str, since: u64) -> Vec<Made> {
    let Some(journal) = cluster.journal() else { return Vec::new() };
    let mut last: BTreeMap<(String, String), (bool, Written)> = BTreeMap::new();
    for written in journal.written(|_| true) {
        let is_theirs =
            written.by.as_ref().is_some_and(|request| request.user == user) && written.revision.0 > since;
        let place = (written.collection.to_string(), written.key.to_string());
        let before = last.get(&place).is_some_and(|(theirs, _)| *theirs);
        last.insert(place, (before || is_theirs, written));
    }
    let there = last.into_iter().filter(|((collection, _), (theirs, written))| {
        *theirs && collection != "coordination.k8s.io/leases" && Did::from(written.happening) != Did::Delete
    });
    there
        .filter_map(|((collection, _), (_, written))| {
            let object = serde_json::from_slice(&written.bytes).ok()?;
            Some(Made { collection, object })
        })
        .collect()
}

/// The requests of a user, as the server's log has them.
fn requests(cluster: &Cluster, user: &str) -> Vec<Value> {
    let wanted = Match { user: Some(user.to_owned()), ..Match::default() };
    let Some(admin) = cluster.admin() else { return Vec::new() };
    let requests = admin.requests(&wanted, 10_000).requests;
    requests.iter().filter_map(|one| serde_json::to_value(one).ok()).collect()
}

/// What the program was refused for want of rights, each in a line.
pub(super) fn refused(cluster: &Cluster, user: &str) -> Vec<String> {
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
