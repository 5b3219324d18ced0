//! Aggregated discovery: everything in one document (`apidiscovery.k8s.io`, `ConvertGroupVersionIntoToDiscovery` of
//! `k8s.io/apiserver/pkg/endpoints/installer.go`).

use serde_json::{Value, json};

use super::elsewhere::{self, Elsewhere};
use super::order;
use kubewright_kinds::{Kind, Kinds, Subresource};

/// `/api` (`core`) and `/apis` as `APIGroupDiscoveryList` (`g=apidiscovery.k8s.io;v=<version>;as=APIGroupDiscoveryList`).
/// The versions, `v2` and `v2beta1`, differ in nothing but their name. `elsewhere` is what other API servers serve.
#[must_use]
pub fn aggregated(kinds: &Kinds, elsewhere: &[Elsewhere], core: bool, version: &str) -> Value {
    let mut groups: Vec<Value> = order::groups(kinds)
        .iter()
        .filter(|group| group.name.is_empty() == core)
        .map(|group| {
            let metadata = if core { json!({}) } else { json!({"name": group.name}) };
            let versions: Vec<Value> = group.versions.iter().map(described).collect();
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    if !core {
        elsewhere::merge(&mut groups, kinds, elsewhere);
    }
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{}", version),
        "metadata": {},
        "items": groups,
    })
}

fn described(version: &order::Version) -> Value {
    let resources: Vec<Value> = version.kinds.iter().map(|kind| resource(kind)).collect();
    json!({"version": version.name, "freshness": "Current", "resources": resources})
}

fn resource(kind: &Kind) -> Value {
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": own_kind(kind, &kind.kind),
        "scope": if kind.namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": super::verbs(kind),
    });
    let subresources: Vec<Value> =
        super::subresources(kind).into_iter().map(|one| subresource(kind, one)).collect();
    for (name, values) in [
        ("shortNames", kind.short_names.clone().into()),
        ("categories", kind.categories.clone().into()),
        ("subresources", Value::Array(subresources)),
    ] {
        if values != json!([]) {
            resource[name] = values;
        }
    }
    resource
}

fn subresource(kind: &Kind, subresource: &Subresource) -> Value {
    let response_kind = match super::foreign_body(kind, subresource) {
        Some((group, version, body)) => json!({"group": group, "version": version, "kind": body}),
        None => own_kind(kind, super::body_kind(kind, subresource)),
    };
    json!({
        "subresource": subresource.name(),
        "responseKind": response_kind,
        "verbs": subresource.verbs(),
    })
}

/// A kind of the version that discovery speaks of: built-in ones leave out which that is.
fn own_kind(kind: &Kind, name: &str) -> Value {
    match kind.custom {
        Some(_) => json!({"group": kind.group, "version": kind.version, "kind": name}),
        None => json!({"group": "", "version": "", "kind": name}),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kubewright_spec::Version;

    use super::*;
    use kubewright_kinds::{Custom, CustomParts, ScalePaths, Scope};
    use kubewright_schema::Schema;
    use kubewright_table::Columns;

    fn custom(group: &str, version: &str) -> Arc<Kind> {
        let paths = ScalePaths {
            spec_replicas: ".spec.replicas".into(),
            status_replicas: ".status.replicas".into(),
            label_selector: None,
        };
        Arc::new(Kind::custom(CustomParts {
            group: group.into(),
            version: version.into(),
            kind: "Thing".into(),
            list_kind: "ThingList".into(),
            plural: "things".into(),
            singular: "thing".into(),
            short_names: vec!["tg".into()],
            categories: vec!["all".into(), "golden".into()],
            scope: Scope::Namespaced,
            subresources: vec![Subresource::CustomScale(paths), Subresource::Status],
            columns: Columns::custom(&[]),
            schema: Schema::custom(&json!({"type": "object"})),
            custom: Custom::default(),
        }))
    }

    #[test]
    fn a_built_in_resource_is_told_with_its_subresources() {
        let document = aggregated(&Kinds::built_in(), &[], false, "v2");
        let apps = &document["items"][1];
        assert_eq!(apps["metadata"], json!({"name": "apps"}));
        assert_eq!(apps["versions"][0]["freshness"], "Current");
        assert_eq!(
            apps["versions"][0]["resources"][2],
            json!({
                "resource": "deployments",
                "responseKind": {"group": "", "version": "", "kind": "Deployment"},
                "scope": "Namespaced",
                "singularResource": "deployment",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "shortNames": ["deploy"],
                "categories": ["all"],
                "subresources": [
                    {
                        "subresource": "scale",
                        "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                        "verbs": ["get", "patch", "update"],
                    },
                    {
                        "subresource": "status",
                        "responseKind": {"group": "", "version": "", "kind": "Deployment"},
                        "verbs": ["get", "patch", "update"],
                    },
                ],
            })
        );
    }

    #[test]
    fn core_stands_alone_and_has_no_name() {
        let document = aggregated(&Kinds::built_in(), &[], true, "v2beta1");
        assert_eq!(document["apiVersion"], "apidiscovery.k8s.io/v2beta1");
        assert_eq!(document["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(document["items"][0]["metadata"], json!({}));
    }

    #[test]
    fn custom_groups_follow_by_name_and_their_versions_by_stability() {
        let custom = ["v1alpha1", "v1", "v1beta1"].map(|version| custom("b.example.com", version));
        let kinds: Vec<Arc<Kind>> = custom.into_iter().chain([self::custom("a.example.com", "v1")]).collect();
        let document = aggregated(&Kinds::of(kinds), &[], false, "v2");
        assert_eq!(document["items"][0]["metadata"]["name"], "a.example.com");
        let versions = document["items"][1]["versions"].as_array().expect("a list");
        let names: Vec<&Value> = versions.iter().map(|version| &version["version"]).collect();
        assert_eq!(names, ["v1", "v1beta1", "v1alpha1"]);
        let resource = &versions[0]["resources"][0];
        assert_eq!(
            resource["responseKind"],
            json!({"group": "b.example.com", "version": "v1", "kind": "Thing"})
        );
        assert_eq!(resource["subresources"][0]["subresource"], "status");
        assert_eq!(resource["subresources"][0]["responseKind"]["group"], "b.example.com");
        assert_eq!(resource["subresources"][1]["responseKind"]["kind"], "Scale");
    }

    /// The lines of `resources.txt`, as `cargo xtask spec` makes them of a document like ours.
    fn lines(document: &Value) -> Vec<String> {
        let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
        let words = |value: &Value, key: &str| {
            let words = list(value, key);
            words.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>().join(",")
        };
        let mut lines = Vec::new();
        for group in list(document, "items") {
            for version in list(&group, "versions") {
                let own = [group["metadata"]["name"].as_str(), version["version"].as_str()];
                let own = own.into_iter().flatten().collect::<Vec<_>>().join("/");
                for resource in list(&version, "resources") {
                    let scope = resource["scope"].as_str().unwrap_or_default().to_lowercase();
                    let name = resource["resource"].as_str().unwrap_or_default().to_owned();
                    let below = list(&resource, "subresources");
                    let below = below
                        .iter()
                        .map(|one| (format!("{name}/{}", one["subresource"].as_str().unwrap()), one));
                    for (name, one) in [(name.clone(), &resource)].into_iter().chain(below) {
                        let kind = |key: &str| one["responseKind"][key].as_str().unwrap_or_default();
                        let of = match kind("version") {
                            "" => own.clone(),
                            version => format!("{}/{version}", kind("group")),
                        };
                        let of = of.trim_start_matches('/');
                        let mut line =
                            format!("{own} {name} {of}/{} {scope} {}", kind("kind"), words(one, "verbs"));
                        let singular = one["singularResource"].as_str().unwrap_or_default().to_owned();
                        for (key, value) in [
                            ("singular", singular),
                            ("short", words(one, "shortNames")),
                            ("categories", words(one, "categories")),
                        ] {
                            if !value.is_empty() {
                                line = format!("{line} {key}={value}");
                            }
                        }
                        lines.push(line);
                    }
                }
            }
        }
        lines
    }

    #[test]
    fn discovery_tells_of_each_resource_what_kubernetes_tells() {
        for version in Version::ALL {
            compare(version);
        }
    }

    fn compare(version: Version) {
        let kinds = Kinds::of_version(version);
        let ours = [true, false].map(|core| lines(&aggregated(&kinds, &[], core, "v2"))).concat();
        let sections = version.tables().resources.split("\n[").skip(1);
        let sections = sections.filter_map(|section| section.split_once("]\n"));
        let theirs: Vec<String> = sections
            .flat_map(|(version, lines)| lines.lines().map(move |line| format!("{version} {line}")))
            .collect();
        for line in &ours {
            assert!(theirs.contains(line), "{line}");
        }
        // In their order, less what is not served.
        assert_eq!(
            theirs.iter().filter(|line| ours.contains(line)).collect::<Vec<_>>(),
            ours.iter().collect::<Vec<_>>()
        );
    }
}
