//! What objects use of a namespace's quotas (`k8s.io/apiserver/pkg/quota/v1`, `k8s.io/kubernetes/pkg/quota/v1`).
//!
//! Pure functions over objects. Admission charges with them what a write would add; the quota controller counts with
//! the same ones what is there.

mod charge;
mod claims;
mod devices;
mod evaluator;
mod pod_totals;
mod pods;
mod scope;
mod services;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

pub use charge::{Change, Charge};
pub use claims::{CLASS_ANNOTATION, class_of as class_of_claim};
pub use evaluator::Evaluator;
pub use kubewright_meta::resources::Resources;
pub use pod_totals::{requests as pod_requests, spec_limits, spec_requests};

use kubewright_kinds::{BuiltIn, Counted};

/// A resource of the API: its group (empty for core) and plural.
pub type GroupResource = (String, String);

/// The resources whose objects a quota with these hard limits (`spec.hard`) counts. A name that counts nothing is
/// passed over.
#[must_use]
pub fn counted(hard: &Value) -> BTreeSet<GroupResource> {
    let names: Vec<&str> = hard.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let mut counted: BTreeSet<GroupResource> = names.iter().filter_map(|name| named(name)).collect();
    // Events, say: no quota counts them, though one may name them (`ignoredResources` in `pkg/quota/v1/install/registry.go`).
    let uncharged = |(group, plural): &GroupResource| {
        BuiltIn::all()
            .any(|kind| kind.counted == Counted::Uncharged && kind.group == *group && kind.plural == *plural)
    };
    counted.retain(|resource| !uncharged(resource));
    let own_names = |kind: &&BuiltIn| {
        matches!(kind.counted, Counted::Pods | Counted::Services | Counted::Claims | Counted::Devices)
    };
    for BuiltIn { group, plural, .. } in BuiltIn::all().filter(own_names) {
        let evaluator = Evaluator::of(group, plural);
        if names.iter().any(|name| evaluator.matches_name(name)) {
            counted.insert(((*group).to_owned(), (*plural).to_owned()));
        }
    }
    counted
}

/// The resource that the name of an object count stands for: `count/deployments.apps`, or one of the older names.
fn named(name: &str) -> Option<GroupResource> {
    let core = |plural: &str| Some((String::new(), plural.to_owned()));
    match name.strip_prefix("count/") {
        Some(resource) => match resource.split_once('.') {
            Some((plural, group)) => Some((group.to_owned(), plural.to_owned())),
            None => core(resource),
        },
        None => {
            let alias =
                BuiltIn::all().find(|kind| kind.counted == Counted::Aliased && kind.plural == name)?;
            Some((alias.group.to_owned(), alias.plural.to_owned()))
        }
    }
}

/// The status that a quota should have, when `objects` are those of its namespace, by resource. What could not be
/// counted (its resource is not in `objects`) stays as it was counted before.
/// `pkg/controller/resourcequota/resource_quota_controller.go`, `syncResourceQuota`.
#[must_use]
pub fn status(quota: &Value, objects: &BTreeMap<GroupResource, Vec<Value>>, now: Timestamp) -> Value {
    let hard = &quota["spec"]["hard"];
    let limits = Resources::of(hard);
    let mut used = Resources::of(&quota["status"]["used"]);
    let scopes = scope::of_quota(quota);
    for ((group, plural), objects) in objects {
        let evaluator = Evaluator::of(group, plural);
        let mut total = Resources::zero(limits.names().filter(|name| evaluator.matches_name(name)));
        for object in objects.iter().filter(|object| evaluator.is_in_scopes(&scopes, object)) {
            total = total.plus(&evaluator.usage(object, now));
        }
        used.replace(total);
    }
    json!({"hard": limits.to_value(), "used": used.only(&limits).to_value()})
}

#[cfg(test)]
mod tests;
