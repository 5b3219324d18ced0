//! The APIServices that the API server keeps by itself: one for each version of a group that it serves
//! (`k8s.io/kubernetes/pkg/controlplane/apiserver/aggregator.go`, `cmd/kube-apiserver/app/aggregator.go`,
//! `k8s.io/kube-aggregator/pkg/controllers/autoregister`).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Kinds;

/// The label of an APIService that is kept by the API server.
pub const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// Its value where that is when the server starts.
const ON_START: &str = "onstart";
/// Its value where that is at any time.
const ALWAYS: &str = "true";

/// The priorities of versions of custom resources: of the group, of the version.
pub const CUSTOM: (i64, i64) = (1000, 100);

/// The priorities of the groups and versions that kube-apiserver serves, in v1.35 to v1.37.
const PRIORITIES: [(&str, &str, i64, i64); 25] = [
    ("", "v1", 18_000, 1),
    ("admissionregistration.k8s.io", "v1", 16_700, 15),
    ("apiextensions.k8s.io", "v1", 16_700, 15),
    ("apps", "v1", 17_800, 15),
    ("authentication.k8s.io", "v1", 17_700, 15),
    ("authorization.k8s.io", "v1", 17_600, 15),
    ("autoscaling", "v1", 17_500, 15),
    ("autoscaling", "v2", 17_500, 30),
    ("batch", "v1", 17_400, 15),
    ("certificates.k8s.io", "v1", 17_300, 15),
    ("certificates.k8s.io", "v1beta1", 17_300, 9),
    ("coordination.k8s.io", "v1", 16_500, 15),
    ("discovery.k8s.io", "v1", 16_200, 15),
    ("events.k8s.io", "v1", 17_750, 15),
    ("flowcontrol.apiserver.k8s.io", "v1", 16_100, 21),
    ("networking.k8s.io", "v1", 17_200, 15),
    ("node.k8s.io", "v1", 16_300, 15),
    ("policy", "v1", 17_100, 15),
    ("rbac.authorization.k8s.io", "v1", 17_000, 15),
    ("resource.k8s.io", "v1", 16_200, 21),
    ("scheduling.k8s.io", "v1", 16_600, 15),
    ("scheduling.k8s.io", "v1beta1", 16_600, 9),
    ("storage.k8s.io", "v1", 16_800, 15),
    ("storagemigration.k8s.io", "v1", 15_800, 15),
    ("storagemigration.k8s.io", "v1beta1", 15_800, 9),
];

/// The priorities of a built-in version of a group: of the group, of the version. None for one that has no APIService.
#[must_use]
pub fn priorities(group: &str, version: &str) -> Option<(i64, i64)> {
    let found = PRIORITIES.iter().find(|(of, named, ..)| (*of, *named) == (group, version));
    found.map(|(_, _, group, version)| (*group, *version))
}

/// The name of the APIService of a version of a group.
#[must_use]
pub fn name(group: &str, version: &str) -> String {
    format!("{version}.{group}")
}

/// Those of the built-in versions, in the order of their names: written when the server starts, and left alone until it starts again.
#[must_use]
pub fn of_built_in(kinds: &Kinds) -> Vec<Value> {
    let built_in = kinds.iter().filter(|kind| kind.custom.is_none());
    let versions: BTreeSet<(&str, &str)> =
        built_in.map(|kind| (kind.group.as_str(), kind.version.as_str())).collect();
    versions.into_iter().filter_map(|(group, version)| of_built_in_version(group, version)).collect()
}

/// That of a built-in version, where it has one.
#[must_use]
pub fn of_built_in_version(group: &str, version: &str) -> Option<Value> {
    Some(object(group, version, ON_START, priorities(group, version)?))
}

/// That of a version of custom resources.
#[must_use]
pub fn of_custom(group: &str, version: &str) -> Value {
    object(group, version, ALWAYS, CUSTOM)
}

fn object(group: &str, version: &str, managed: &str, (of_group, of_version): (i64, i64)) -> Value {
    let mut spec =
        json!({"version": version, "groupPriorityMinimum": of_group, "versionPriority": of_version});
    if !group.is_empty() {
        spec["group"] = group.into();
    }
    json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name(group, version), "labels": {MANAGED: managed}},
        "spec": spec
    })
}

/// What the server does about an APIService.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It stays as it is.
    Leave,
    /// The desired one is created.
    Create,
    /// It goes.
    Delete,
    /// It gets the spec of the desired one.
    Replace,
}

/// What is to be done, by what is there and what is desired, when the server starts and afterwards (`checkAPIService`).
#[must_use]
pub fn step(current: Option<&Value>, desired: Option<&Value>, starts: bool) -> Step {
    let is_on_start = |object: &Value| managed(object) == ON_START;
    if desired.is_some_and(is_on_start) && !starts {
        return Step::Leave;
    }
    let Some(current) = current else {
        return if desired.is_some() { Step::Create } else { Step::Leave };
    };
    if !matches!(managed(current), ON_START | ALWAYS) || is_on_start(current) && !starts {
        return Step::Leave;
    }
    match desired {
        None => Step::Delete,
        Some(desired) if same_spec(current, desired) => Step::Leave,
        Some(_) => Step::Replace,
    }
}

/// Whether the server keeps it at any time, and not when it starts alone.
pub(super) fn is_always_managed(object: &Value) -> bool {
    managed(object) == ALWAYS
}

fn managed(object: &Value) -> &str {
    object["metadata"]["labels"][MANAGED].as_str().unwrap_or_default()
}

/// Whether two specs are the same; what is empty is not there.
fn same_spec(one: &Value, other: &Value) -> bool {
    super::super::at::same(&one["spec"], &other["spec"])
}

#[cfg(test)]
mod tests {
    use kubewright_spec::Version;

    use super::*;

    #[test]
    fn every_built_in_version_but_the_aggregators_own_has_one() {
        for version in Version::ALL {
            let kinds = Kinds::of_version(version);
            let versions: BTreeSet<String> =
                kinds.iter().map(|kind| name(&kind.group, &kind.version)).collect();
            let mut registered: BTreeSet<String> = of_built_in(&kinds)
                .iter()
                .map(|one| one["metadata"]["name"].as_str().unwrap().to_owned())
                .collect();
            assert!(registered.insert("v1.apiregistration.k8s.io".to_owned()));
            assert_eq!(registered, versions);
        }
    }

    #[test]
    fn built_in_ones_are_put_right_when_the_server_starts_and_custom_ones_at_any_time() {
        let (built_in, custom) =
            (object("apps", "v1", ON_START, (17_800, 15)), of_custom("example.com", "v1"));
        for starts in [true, false] {
            let then = |step| if starts { step } else { Step::Leave };
            assert_eq!(step(None, Some(&built_in), starts), then(Step::Create));
            assert_eq!(step(None, Some(&custom), starts), Step::Create);
            assert_eq!(step(Some(&built_in), None, starts), then(Step::Delete));
            assert_eq!(step(Some(&custom), None, starts), Step::Delete);
            let changed = |object: &Value| {
                let mut changed = object.clone();
                changed["spec"]["versionPriority"] = 1.into();
                changed
            };
            assert_eq!(step(Some(&changed(&built_in)), Some(&built_in), starts), then(Step::Replace));
            assert_eq!(step(Some(&changed(&custom)), Some(&custom), starts), Step::Replace);
            assert_eq!(step(Some(&custom), Some(&custom), starts), Step::Leave);
            let mut own = changed(&custom);
            own["metadata"]["labels"] = json!({});
            assert_eq!(step(Some(&own), Some(&custom), starts), Step::Leave);
            assert_eq!(step(Some(&own), None, starts), Step::Leave);
            assert_eq!(step(None, None, starts), Step::Leave);
        }
    }
}
