//! What other API servers say of the versions that they serve, in aggregated discovery
//! (`k8s.io/kube-aggregator/pkg/apiserver/handler_discovery.go`,
//! `k8s.io/apiserver/pkg/endpoints/discovery/aggregated/handler.go`).

use std::collections::BTreeMap;

use kubewright_kinds::Kinds;
use kubewright_kinds::built_in::apiregistration::api_service::API_SERVICE;
use kubewright_kinds::rules::api_services::local;
use serde_json::{Map, Value, json};

use super::order::compare_versions;

/// A version of a group that another API server serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Elsewhere {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// `groupPriorityMinimum` and `versionPriority` of its APIService.
    pub priorities: (i64, i64),
    /// Its resources, as `APIVersionDiscovery` lists them; none where that is not known.
    pub resources: Option<Value>,
    /// Whether the API server has just said so.
    pub is_current: bool,
}

impl Elsewhere {
    fn described(&self) -> Value {
        let mut version = json!({"version": self.version});
        if let Some(resources) = self.resources.as_ref().filter(|resources| **resources != json!([])) {
            version["resources"] = resources.clone();
        }
        version["freshness"] = if self.is_current { "Current" } else { "Stale" }.into();
        version
    }
}

/// The priority of a version that nobody has given one (`addGroupVersionLocked`).
const UNKNOWN: (i64, i64) = (1000, 15);
/// That of the group of APIServices.
const OWN: (i64, i64) = (20_001, 0);

/// Puts what is served elsewhere among the groups of aggregated discovery: in the place of what this server serves under the same
/// name, and by priority.
pub(super) fn merge(groups: &mut Vec<Value>, kinds: &Kinds, elsewhere: &[Elsewhere]) {
    if elsewhere.is_empty() {
        return;
    }
    let mut priorities = local_priorities(kinds);
    for one in elsewhere {
        priorities.insert((one.group.clone(), one.version.clone()), one.priorities);
        let found = groups.iter_mut().find(|group| group["metadata"]["name"] == one.group.as_str());
        let versions = match found {
            Some(group) => group["versions"].as_array_mut(),
            None => {
                groups.push(json!({"metadata": {"name": one.group}, "versions": []}));
                groups.last_mut().and_then(|group| group["versions"].as_array_mut())
            }
        };
        let Some(versions) = versions else { continue };
        match versions.iter_mut().find(|version| version["version"] == one.version.as_str()) {
            Some(version) => *version = one.described(),
            None => versions.push(one.described()),
        }
    }
    let of = |group: &str, version: &str| {
        priorities.get(&(group.to_owned(), version.to_owned())).copied().unwrap_or(UNKNOWN)
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for group in &mut *groups {
        let name = text(&group["metadata"]["name"]);
        let Some(versions) = group["versions"].as_array_mut() else { continue };
        versions.sort_by(|one, other| {
            let (one, other) = (text(&one["version"]), text(&other["version"]));
            let by_name = || compare_versions(&other, &one);
            of(&name, &other).1.cmp(&of(&name, &one).1).then_with(by_name)
        });
    }
    groups.sort_by_cached_key(|group| {
        let name = text(&group["metadata"]["name"]);
        let versions = group["versions"].as_array().into_iter().flatten();
        let highest = versions.map(|version| of(&name, &text(&version["version"])).0).max();
        (std::cmp::Reverse(highest), name)
    });
}

/// The priorities of what this server serves, which are not those of its APIServices: these may be changed.
fn local_priorities(kinds: &Kinds) -> BTreeMap<(String, String), (i64, i64)> {
    let of = |group: &str, version: &str, is_custom: bool| {
        if is_custom {
            return local::CUSTOM;
        }
        if group == API_SERVICE.group { OWN } else { local::priorities(group, version).unwrap_or(UNKNOWN) }
    };
    let mut found = BTreeMap::new();
    for kind in kinds.iter() {
        let key = (kind.group.clone(), kind.version.clone());
        found.entry(key).or_insert_with(|| of(&kind.group, &kind.version, kind.custom.is_some()));
    }
    found
}

/// The resources of a version by the aggregated discovery (`APIGroupDiscoveryList`) of its API server. None where that does not
/// speak of it.
///
/// # Errors
/// When what it says of them is not well-formed.
pub fn resources_of_aggregated(
    document: &Value,
    group: &str,
    version: &str,
) -> Result<Option<Value>, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut groups = list(&document["items"]).into_iter();
    let found = groups.find(|one| one["metadata"]["name"].as_str().unwrap_or_default() == group);
    let versions = found.map(|found| list(&found["versions"])).unwrap_or_default();
    let Some(found) = versions.into_iter().find(|one| one["version"] == version) else { return Ok(None) };
    let told: Option<Vec<Value>> = list(&found["resources"]).iter().map(resource).collect();
    match told {
        Some(told) => Ok(Some(told.into())),
        None => Err(format!("the discovery of {group}/{version} is malformed")),
    }
}

/// What is known of a resource, as clients read it: each field of its type, and no other. None where one has another type.
fn resource(told: &Value) -> Option<Value> {
    let mut resource = json!({
        "resource": text(&told["resource"])?,
        "responseKind": response_kind(&told["responseKind"])?,
        "scope": text(&told["scope"])?,
        "singularResource": text(&told["singularResource"])?,
        "verbs": words(&told["verbs"])?,
    });
    let mut below = Vec::new();
    for one in told["subresources"].as_array().into_iter().flatten() {
        below.push(json!({
            "subresource": text(&one["subresource"])?,
            "responseKind": response_kind(&one["responseKind"])?,
            "verbs": words(&one["verbs"])?,
        }));
    }
    for (name, values) in [
        ("shortNames", words(&told["shortNames"])?),
        ("categories", words(&told["categories"])?),
        ("subresources", below.into()),
    ] {
        if values != json!([]) {
            resource[name] = values;
        }
    }
    Some(resource)
}

/// A text; empty where there is none.
fn text(value: &Value) -> Option<&str> {
    if value.is_null() { Some("") } else { value.as_str() }
}

/// A list of texts; empty where there is none.
fn words(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some(json!([])),
        Value::Array(words) if words.iter().all(Value::is_string) => Some(value.clone()),
        _ => None,
    }
}

fn response_kind(value: &Value) -> Option<Value> {
    let [group, version, kind] = ["group", "version", "kind"].map(|key| text(&value[key]));
    Some(json!({"group": group?, "version": version?, "kind": kind?}))
}

/// The resources of a version by the plain discovery (`APIResourceList`) of its API server
/// (`ConvertGroupVersionIntoToDiscovery`).
///
/// # Errors
/// When a subresource has another scope than its resource.
pub fn resources_of_plain(document: &Value) -> Result<Value, String> {
    let all = document["resources"].as_array().map_or(&[][..], Vec::as_slice);
    let verbs = |one: &Value| words(&one["verbs"]).unwrap_or_else(|| json!([]));
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let scope = |one: &Value| if one["namespaced"] == true { "Namespaced" } else { "Cluster" };
    let kind = |one: &Value| json!({"group": text(one, "group"), "version": text(one, "version"), "kind": text(one, "kind")});
    let unknown = json!({"group": "", "version": "", "kind": ""});
    let mut resources: Vec<Map<String, Value>> = Vec::new();
    for one in all.iter().filter(|one| !text(one, "name").contains('/')) {
        let mut resource = Map::new();
        resource.insert("resource".into(), text(one, "name").into());
        resource.insert("responseKind".into(), kind(one));
        resource.insert("scope".into(), scope(one).into());
        resource.insert("singularResource".into(), text(one, "singularName").into());
        resource.insert("verbs".into(), verbs(one));
        for key in ["shortNames", "categories"] {
            if let Some(words) = words(&one[key]).filter(|words| *words != json!([])) {
                resource.insert(key.into(), words);
            }
        }
        resources.push(resource);
    }
    for one in all {
        let name = text(one, "name");
        let Some((parent, below)) = name.split_once('/') else { continue };
        let place = resources.iter().position(|resource| resource["resource"] == parent);
        let place = place.unwrap_or_else(|| {
            let parent = json!({
                "resource": parent,
                "responseKind": unknown,
                "scope": scope(one),
                "singularResource": "",
                "verbs": []
            });
            resources.extend(parent.as_object().cloned());
            resources.len() - 1
        });
        let resource = &mut resources[place];
        let of_parent = resource["scope"].as_str().unwrap_or_default();
        if of_parent != scope(one) {
            return Err(format!(
                "Error: Parent {parent} (scope: {of_parent}) and subresource {below} (scope: {}) scope do not match",
                scope(one)
            ));
        }
        let kind = if text(one, "kind").is_empty() { unknown.clone() } else { kind(one) };
        let subresource = json!({"subresource": below, "responseKind": kind, "verbs": verbs(one)});
        let all = resource.entry("subresources").or_insert_with(|| json!([]));
        if let Some(all) = all.as_array_mut() {
            all.push(subresource);
        }
    }
    Ok(resources.into_iter().map(Value::Object).collect())
}

#[cfg(test)]
mod tests {
    use super::super::aggregated;
    use super::*;

    fn elsewhere(group: &str, version: &str, of_group: i64, of_version: i64) -> Elsewhere {
        Elsewhere {
            group: group.to_owned(),
            version: version.to_owned(),
            priorities: (of_group, of_version),
            resources: Some(json!([{"resource": "things"}])),
            is_current: true,
        }
    }

    #[test]
    fn what_is_served_elsewhere_is_told_by_its_priority() {
        let all = [
            elsewhere("low.example.com", "v1", 10, 10),
            elsewhere("high.example.com", "v1", 17_900, 10),
            elsewhere("apps", "v9", 5, 20),
        ];
        let document = aggregated(&Kinds::built_in(), &all, false, "v2");
        let items = document["items"].as_array().expect("a list");
        let names: Vec<&Value> = items.iter().map(|group| &group["metadata"]["name"]).collect();
        assert_eq!(names[..3], ["apiregistration.k8s.io", "high.example.com", "apps"]);
        assert_eq!(names.last(), Some(&&json!("low.example.com")));
        let versions = items[2]["versions"].as_array().expect("a list");
        assert_eq!((&versions[0]["version"], &versions[1]["version"]), (&json!("v9"), &json!("v1")));
        assert_eq!(
            items[1],
            json!({
                "metadata": {"name": "high.example.com"},
                "versions": [{"version": "v1", "freshness": "Current", "resources": [{"resource": "things"}]}]
            })
        );
    }

    #[test]
    fn what_is_not_known_is_stale() {
        let one = Elsewhere { resources: None, is_current: false, ..elsewhere("a.example.com", "v1", 1, 1) };
        let document = aggregated(&Kinds::built_in(), &[one], false, "v2");
        let last = document["items"].as_array().and_then(|items| items.last()).expect("a group");
        assert_eq!(last["versions"], json!([{"version": "v1", "freshness": "Stale"}]));
    }

    #[test]
    fn both_sorts_of_discovery_tell_the_same() {
        let kinds = Kinds::built_in();
        let document = aggregated(&kinds, &[], false, "v2");
        let told = resources_of_aggregated(&document, "apps", "v1").expect("it is well-formed");
        let plain = super::super::resources(&kinds, "apps", "v1").expect("apps are served");
        assert_eq!(resources_of_plain(&plain).map(Some), Ok(told));
        assert_eq!(resources_of_aggregated(&document, "apps", "v9"), Ok(None));
    }

    #[test]
    fn what_is_not_well_formed_is_not_told() {
        let with = |resource: Value| {
            let version = json!({"version": "v1", "resources": [resource]});
            let document = json!({"items": [{"metadata": {"name": "a.example.com"}, "versions": [version]}]});
            resources_of_aggregated(&document, "a.example.com", "v1")
        };
        let good =
            with(json!({"resource": "things", "verbs": ["get"], "own": 1})).expect("it is well-formed");
        assert_eq!(good.expect("it is told")[0]["own"], Value::Null);
        for bad in [json!({"verbs": "get"}), json!({"scope": 1}), json!({"subresources": [{"verbs": [1]}]})] {
            assert!(with(bad).is_err());
        }
    }

    #[test]
    fn a_subresource_without_its_resource_makes_one_and_scopes_have_to_agree() {
        let one = json!({"name": "things/status", "namespaced": true, "kind": "Thing", "verbs": ["get"]});
        let made = resources_of_plain(&json!({"resources": [one]})).expect("they agree");
        assert_eq!((&made[0]["resource"], &made[0]["scope"]), (&json!("things"), &json!("Namespaced")));
        assert_eq!(made[0]["subresources"][0]["subresource"], "status");
        let parent = json!({"name": "things", "namespaced": false, "kind": "Thing", "verbs": ["get"]});
        let why = resources_of_plain(&json!({"resources": [parent, one]})).expect_err("they do not");
        assert_eq!(
            why,
            "Error: Parent things (scope: Cluster) and subresource status (scope: Namespaced) scope do not match"
        );
    }
}
