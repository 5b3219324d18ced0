//! Plain discovery of groups, by the APIServices that register their versions
//! (`k8s.io/kube-aggregator/pkg/apiserver/handler_apis.go`).

use std::collections::BTreeMap;

use kubewright_kinds::Kinds;
use kubewright_kinds::built_in::apiregistration::api_service::API_SERVICE;
use kubewright_kinds::rules::api_services::{ApiService, local};
use serde_json::{Map, Value, json};

use super::order::compare_versions;

/// `/apis`: `APIGroupList`. The group of APIServices comes first, then those that are registered, by priority. A version that a
/// definition has just made counts as registered.
#[must_use]
pub fn groups(kinds: &Kinds, services: &[ApiService]) -> Value {
    if kinds.find(&API_SERVICE).is_none() {
        return super::plain::groups(kinds);
    }
    let own = described(API_SERVICE.group, &[API_SERVICE.version.to_owned()]);
    let registered = by_priority(all(kinds, services));
    let registered = registered.iter().filter(|(group, _)| !group.is_empty());
    let registered = registered.map(|(group, versions)| described(group, versions));
    let groups: Vec<_> = [own].into_iter().chain(registered).map(Value::Object).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`: `APIGroup`. None for a group that is neither registered nor served.
#[must_use]
pub fn group(kinds: &Kinds, services: &[ApiService], group: &str) -> Option<Value> {
    let registered: Vec<_> = all(kinds, services).into_iter().filter(|one| one.group == group).collect();
    let found = by_priority(registered);
    let Some((name, versions)) = found.first().filter(|_| !group.is_empty()) else {
        return super::plain::group(kinds, group);
    };
    let mut document = described(name, versions);
    document.insert("kind".into(), "APIGroup".into());
    document.insert("apiVersion".into(), "v1".into());
    Some(Value::Object(document))
}

/// A version of a group, and its place among others.
struct Registered {
    name: String,
    group: String,
    version: String,
    priorities: (i64, i64),
}

/// What is registered. The versions of definitions are those that are served: one that has just come is not registered yet, and
/// one that has just gone still is.
fn all(kinds: &Kinds, services: &[ApiService]) -> Vec<Registered> {
    let mut all: BTreeMap<String, Registered> = BTreeMap::new();
    for kind in kinds.iter().filter(|kind| kind.custom.is_some()) {
        let name = local::name(&kind.group, &kind.version);
        all.entry(name.clone()).or_insert_with(|| Registered {
            name,
            group: kind.group.clone(),
            version: kind.version.clone(),
            priorities: local::CUSTOM,
        });
    }
    for one in services {
        if one.of_definition && !all.contains_key(&one.name) {
            continue;
        }
        let registered = Registered {
            name: one.name.clone(),
            group: one.group.clone(),
            version: one.version.clone(),
            priorities: (one.group_priority, one.version_priority),
        };
        all.insert(one.name.clone(), registered);
    }
    all.into_values().collect()
}

/// The groups, each with its versions, those first that are preferred (`SortedByGroupAndVersion`).
fn by_priority(mut all: Vec<Registered>) -> Vec<(String, Vec<String>)> {
    all.sort_by(|one, other| {
        other.priorities.0.cmp(&one.priorities.0).then_with(|| one.name.cmp(&other.name))
    });
    let mut groups: Vec<(String, Vec<Registered>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for one in all {
        let place = *places.entry(one.group.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push((one.group.clone(), Vec::new()));
        }
        groups[place].1.push(one);
    }
    let sorted = groups.into_iter().map(|(group, mut versions)| {
        versions.sort_by(|one, other| {
            let by_name = || compare_versions(&other.version, &one.version);
            other.priorities.1.cmp(&one.priorities.1).then_with(by_name)
        });
        (group, versions.into_iter().map(|one| one.version).collect())
    });
    sorted.collect()
}

fn described(group: &str, versions: &[String]) -> Map<String, Value> {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    let mut document = Map::new();
    document.insert("name".into(), group.into());
    document.insert("preferredVersion".into(), versions.first().cloned().unwrap_or_default());
    document.insert("versions".into(), versions.into());
    document
}

#[cfg(test)]
mod tests {
    use kubewright_spec::Version;

    use super::*;

    fn service(group: &str, version: &str, of_group: i64, of_version: i64) -> ApiService {
        ApiService::read(&json!({
            "metadata": {"name": local::name(group, version)},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": of_group,
                "versionPriority": of_version
            }
        }))
    }

    fn of_kinds(kinds: &Kinds) -> Vec<ApiService> {
        local::of_built_in(kinds).iter().map(ApiService::read).collect()
    }

    fn names(list: &Value) -> Vec<&str> {
        let groups = list["groups"].as_array().expect("a list");
        groups.iter().filter_map(|group| group["name"].as_str()).collect()
    }

    #[test]
    fn what_is_built_in_is_told_as_it_is_served() {
        for version in Version::ALL {
            let kinds = Kinds::of_version(version);
            let services = of_kinds(&kinds);
            assert_eq!(groups(&kinds, &services), super::super::plain::groups(&kinds));
            let autoscaling = group(&kinds, &services, "autoscaling");
            assert_eq!(autoscaling, super::super::plain::group(&kinds, "autoscaling"));
            assert!(group(&kinds, &services, API_SERVICE.group).is_some());
            assert_eq!(group(&kinds, &services, "nope.example.com"), None);
        }
    }

    #[test]
    fn groups_and_versions_are_told_by_priority() {
        let kinds = Kinds::built_in();
        let mut services = of_kinds(&kinds);
        services.extend([
            service("low.example.com", "v1", 10, 10),
            service("high.example.com", "v1beta1", 20_000, 10),
            service("high.example.com", "v1", 5, 10),
            service("high.example.com", "v3alpha1", 5, 11),
        ]);
        let list = groups(&kinds, &services);
        let names = names(&list);
        assert_eq!(names[..3], ["apiregistration.k8s.io", "high.example.com", "apps"]);
        assert_eq!(names.last(), Some(&"low.example.com"));
        let high = group(&kinds, &services, "high.example.com").expect("it is registered");
        let versions: Vec<_> =
            high["versions"].as_array().expect("a list").iter().map(|one| one["version"].clone()).collect();
        assert_eq!(versions, ["v3alpha1", "v1", "v1beta1"]);
        assert_eq!(high["preferredVersion"]["version"], "v3alpha1");
    }
}
