//! The documents of plain discovery (`k8s.io/apiserver/pkg/endpoints/discovery`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use super::order::{self, Group};
use kubewright_kinds::{Kind, Kinds, Subresource};

/// `/api`: `APIVersions`. The address, such as `10.0.0.1:6443`, is where clients from anywhere reach the server.
#[must_use]
pub fn api_versions(kinds: &Kinds, server_address: &str) -> Value {
    let versions: Vec<&str> = order::groups(kinds)
        .into_iter()
        .filter(|group| group.name.is_empty())
        .flat_map(|group| group.versions)
        .map(|version| version.name)
        .collect();
    json!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    })
}

/// `/apis`: `APIGroupList` of what is served here.
pub(super) fn groups(kinds: &Kinds) -> Value {
    let groups: Vec<Value> = order::groups(kinds)
        .iter()
        .filter(|group| !group.name.is_empty())
        .map(described)
        .map(Value::Object)
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`: `APIGroup`. None for a group that is not served here.
pub(super) fn group(kinds: &Kinds, group: &str) -> Option<Value> {
    let found = order::groups(kinds).into_iter().find(|served| served.name == group && !group.is_empty())?;
    let mut document = described(&found);
    document.insert("kind".into(), "APIGroup".into());
    document.insert("apiVersion".into(), "v1".into());
    Some(Value::Object(document))
}

fn described(group: &Group) -> Map<String, Value> {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| json!({"groupVersion": version.group_version(group.name), "version": version.name}))
        .collect();
    let mut document = Map::new();
    document.insert("name".into(), group.name.into());
    document.insert("preferredVersion".into(), versions.first().cloned().unwrap_or_default());
    document.insert("versions".into(), versions.into());
    document
}

/// `/api/v1`, `/apis/<group>/<version>`: `APIResourceList`. None for a version that is not served.
#[must_use]
pub fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let groups = order::groups(kinds);
    let served = groups.iter().find(|served| served.name == group)?;
    let served = served.versions.iter().find(|served| served.name == version)?;
    let mut resources = Vec::new();
    for kind in &served.kinds {
        resources.push(resource(kind));
        resources.extend(super::subresources(kind).into_iter().map(|one| subresource(kind, one)));
    }
    let mut document = json!({
        "kind": "APIResourceList",
        "groupVersion": served.group_version(group),
        "resources": resources,
    });
    // Core answers as it did before there were groups: without a version of its own.
    if !group.is_empty() {
        document["apiVersion"] = "v1".into();
    }
    Some(document)
}

fn resource(kind: &Kind) -> Value {
    let mut resource = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced(),
        "kind": kind.kind,
        "verbs": super::verbs(kind),
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = kind.short_names.clone().into();
    }
    if !kind.categories.is_empty() {
        resource["categories"] = kind.categories.clone().into();
    }
    if kind.verbs.are_of_stored() {
        resource["storageVersionHash"] = storage_version_hash(kind).into();
    }
    resource
}

/// What changes when objects are stored in another version (`k8s.io/apiserver/pkg/endpoints/discovery/storageversionhash.go`).
fn storage_version_hash(kind: &Kind) -> String {
    let api_version = kind.storage_api_version();
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let hash = digest(&SHA256, format!("{group}/{version}/{}", kind.kind).as_bytes());
    STANDARD.encode(hash.as_ref().get(..8).unwrap_or_default())
}

fn subresource(kind: &Kind, subresource: &Subresource) -> Value {
    let mut resource = json!({
        "name": format!("{}/{}", kind.plural, subresource.name()),
        "singularName": "",
        "namespaced": kind.namespaced(),
        "kind": super::body_kind(kind, subresource),
        "verbs": subresource.verbs(),
    });
    if let Some((group, version, _)) = super::foreign_body(kind, subresource) {
        resource["group"] = group.into();
        resource["version"] = version.into();
    }
    resource
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
        let items = list.as_array().expect("a list");
        items.iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn core_is_told_as_it_was_before_groups() {
        let kinds = Kinds::built_in();
        assert_eq!(
            api_versions(&kinds, "127.0.0.1:6443"),
            json!({
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
            })
        );
        let list = resources(&kinds, "", "v1").expect("core is served");
        assert_eq!((&list["apiVersion"], &list["groupVersion"]), (&Value::Null, &json!("v1")));
        assert_eq!(
            named(&list["resources"], "configmaps"),
            &json!({
                "name": "configmaps",
                "singularName": "configmap",
                "namespaced": true,
                "kind": "ConfigMap",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "shortNames": ["cm"],
                "storageVersionHash": "qFsyl6wFWjQ=",
            })
        );
        assert_eq!(
            named(&list["resources"], "serviceaccounts/token"),
            &json!({
                "name": "serviceaccounts/token",
                "singularName": "",
                "namespaced": true,
                "group": "authentication.k8s.io",
                "version": "v1",
                "kind": "TokenRequest",
                "verbs": ["create"],
            })
        );
        assert_eq!(named(&list["resources"], "pods/binding")["kind"], "Binding");
        assert_eq!(named(&list["resources"], "pods/binding")["group"], Value::Null);
        assert_eq!(named(&list["resources"], "endpoints")["singularName"], "endpoints");
    }

    #[test]
    fn a_resource_is_followed_by_its_subresources() {
        let list = resources(&Kinds::built_in(), "apps", "v1").expect("apps is served");
        let names: Vec<&str> = list["resources"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|item| item["name"].as_str())
            .collect();
        assert_eq!(names[3..6], ["deployments", "deployments/scale", "deployments/status"]);
        assert_eq!(list["apiVersion"], "v1");
    }

    #[test]
    fn groups_tell_their_versions() {
        let kinds = Kinds::built_in();
        let expected = json!({
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": "autoscaling",
            "versions": [
                {"groupVersion": "autoscaling/v2", "version": "v2"},
                {"groupVersion": "autoscaling/v1", "version": "v1"},
            ],
            "preferredVersion": {"groupVersion": "autoscaling/v2", "version": "v2"},
        });
        assert_eq!(group(&kinds, "autoscaling"), Some(expected));
        let list = groups(&kinds);
        assert_eq!(named(&list["groups"], "apps")["kind"], Value::Null);
        assert_eq!(list["groups"][1]["name"], "apps");
    }

    #[test]
    fn what_is_not_served_is_not_told() {
        let kinds = Kinds::built_in();
        assert_eq!(group(&kinds, "nope.example.com"), None);
        assert_eq!(group(&kinds, ""), None);
        assert_eq!(resources(&kinds, "apps", "v9"), None);
        assert_eq!(groups(&Kinds::default())["groups"], json!([]));
    }
}
