use kubewright_spec::Version;
use serde_json::{Value, json};

use super::*;
use crate::{Kinds, Scope, Subresource};

mod empties;
mod established;
mod schemas;

fn definition(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn plain() -> Value {
    definition(&json!({"type": "object"}))
}

/// The complaints about a definition with its defaults set.
fn complaints(mut definition: Value, old: Option<&Value>) -> Vec<String> {
    default(&mut definition);
    match old {
        None => begin(&mut definition),
        Some(old) => {
            definition["status"] = old["status"].clone();
            store(&mut definition);
        }
    }
    validate(&definition, old).iter().map(ToString::to_string).collect()
}

fn complaints_of_schema(schema: &Value) -> Vec<String> {
    let prefix = "spec.validation.openAPIV3Schema";
    complaints(definition(schema), None)
        .into_iter()
        .map(|one| {
            one.strip_prefix(prefix).map_or_else(|| panic!("{one} is not about the schema"), str::to_owned)
        })
        .collect()
}

fn with(mut definition: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    definition.pointer_mut(parent).unwrap()[key] = value;
    definition
}

fn now() -> jiff::Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn established(mut definition: Value) -> Value {
    default(&mut definition);
    begin(&mut definition);
    status(&mut definition, &Kinds::of([]), now());
    definition
}

#[test]
fn defaults_complete_the_names_and_the_conversion() {
    let mut definition = plain();
    default(&mut definition);
    begin(&mut definition);
    assert_eq!(
        definition["spec"]["names"],
        json!({"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"})
    );
    assert_eq!(definition["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(
        definition["status"],
        json!({"conditions": null, "acceptedNames": {"kind": "", "plural": ""}, "storedVersions": ["v1"]})
    );
    let once = definition.clone();
    default(&mut definition);
    assert_eq!(definition, once);
}

#[test]
fn what_the_author_says_stays() {
    let names =
        json!({"plural": "things", "kind": "Thing", "singular": "thingy", "listKind": "ThingCollection"});
    let mut definition = with(plain(), "/spec/names", names.clone());
    default(&mut definition);
    assert_eq!(definition["spec"]["names"], names);
}

#[test]
fn a_plain_definition_is_valid() {
    assert_eq!(complaints(plain(), None), Vec::<String>::new());
}

#[test]
fn names_groups_and_versions_follow_the_rules() {
    let label = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    for (pointer, value, expected) in [
        ("/metadata/name", json!("wrong.example.com"), vec![r#"metadata.name: Invalid value: "wrong.example.com": must be spec.names.plural+"."+spec.group"#.to_owned()]),
        ("/spec/scope", json!("Everywhere"), vec![r#"spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced""#.to_owned()]),
        ("/spec/names/kind", json!(""), ["singular", "kind", "listKind"].map(|name| format!("spec.names.{name}: Required value")).to_vec()),
        ("/spec/names/listKind", json!("Thing"), vec![r#"spec.names.listKind: Invalid value: "Thing": kind and listKind may not be the same"#.to_owned()]),
        ("/spec/names/shortNames", json!(["UP"]), vec![format!(r#"spec.names.shortNames[0]: Invalid value: "UP": {label}"#)]),
        ("/spec/names/categories", json!(["a", "B"]), vec![format!(r#"spec.names.categories[1]: Invalid value: "B": {label}"#)]),
        ("/spec/names/kind", json!("Bad_Kind"), vec![
            format!(r#"spec.names.singular: Invalid value: "bad_kind": {label}"#),
            format!(r#"spec.names.kind: Invalid value: "Bad_Kind": may have mixed case, but should otherwise match: {label}"#),
            format!(r#"spec.names.listKind: Invalid value: "Bad_KindList": may have mixed case, but should otherwise match: {label}"#),
        ]),
        ("/spec/preserveUnknownFields", json!(true), vec!["spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead".to_owned()]),
        ("/spec/versions/0/name", json!("V1"), vec![format!(r#"spec.versions[0].name: Invalid value: "V1": {label}"#), format!(r#"spec.version: Invalid value: "V1": {label}"#)]),
        ("/spec/versions/0/deprecationWarning", json!("old"), vec![r#"spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions"#.to_owned()]),
        ("/spec/versions/0/schema", Value::Null, vec!["spec.versions[0].schema.openAPIV3Schema: Required value".to_owned()]),
    ] {
        assert_eq!(complaints(with(plain(), pointer, value), None), expected, "{pointer}");
    }
}

#[test]
fn a_group_is_a_domain_and_protected_ones_need_approval() {
    let in_group = |group: &str| {
        let named = with(plain(), "/metadata/name", format!("things.{group}").into());
        with(named, "/spec/group", group.into())
    };
    assert_eq!(
        complaints(in_group("nodots"), None),
        [r#"spec.group: Invalid value: "nodots": should be a domain with at least one dot"#]
    );
    let field = "metadata.annotations[api-approved.kubernetes.io]";
    let missing = complaints(in_group("x.k8s.io"), None);
    assert_eq!(
        missing,
        [format!(
            "{field}: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
        )]
    );
    for (annotation, fine) in
        [("https://github.com/x/y", true), ("unapproved, for a test", true), ("please", false)]
    {
        let approved = with(
            in_group("x.k8s.io"),
            "/metadata/annotations",
            json!({"api-approved.kubernetes.io": annotation}),
        );
        assert_eq!(complaints(approved, None).is_empty(), fine, "{annotation}");
    }
    assert_eq!(complaints(in_group("notk8s.io"), None), Vec::<String>::new());
}

#[test]
fn an_empty_spec_is_told_what_it_lacks() {
    let empty = json!({"metadata": {"name": "x.y.z"}, "spec": {}});
    assert_eq!(
        complaints(empty, None),
        [
            r#"metadata.name: Invalid value: "x.y.z": must be spec.names.plural+"."+spec.group"#,
            "spec.group: Required value",
            "spec.scope: Required value",
            "spec.versions: Invalid value: null: must have exactly one version marked as storage version",
            "spec.names.plural: Required value",
            "spec.names.singular: Required value",
            "spec.names.kind: Required value",
            "spec.names.listKind: Required value",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ]
    );
}

#[test]
fn exactly_one_version_is_stored_and_names_are_unique() {
    let twice = with(
        plain(),
        "/spec/versions",
        json!([
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ]),
    );
    let found = complaints(twice, None);
    assert!(found[0].ends_with("must contain unique version names"), "{found:?}");
    assert!(found[1].ends_with("must have exactly one version marked as storage version"), "{found:?}");
}

#[test]
fn a_version_that_is_there_twice_is_stored_once() {
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let twice = with(plain(), "/spec/versions", json!([version, version]));
    let mut old = plain();
    old["status"]["storedVersions"] = json!(["v1"]);
    let found = complaints(twice, Some(&old));
    assert!(found.iter().any(|found| found.contains("must have the storage version v1")), "{found:?}");
}

#[test]
fn a_conversion_webhook_has_an_address_and_a_review() {
    let bare = with(plain(), "/spec/conversion", json!({"strategy": "Webhook"}));
    assert_eq!(
        complaints(bare, None),
        [
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value",
        ]
    );
    let webhook = |client: Value, versions: Value| {
        let webhook = json!({"clientConfig": client, "conversionReviewVersions": versions});
        let conversion = json!({"strategy": "Webhook", "webhook": webhook});
        complaints(with(plain(), "/spec/conversion", conversion), None)
    };
    let none = Vec::<String>::new();
    assert_eq!(webhook(json!({"url": "https://x"}), json!(["v1"])), none);
    let service = json!({"service": {"name": "a", "namespace": "b", "path": "/x"}});
    assert_eq!(webhook(service, json!(["v7", "v1beta1"])), none);
    let service = json!({"service": {"name": "a", "namespace": "b", "path": "x//y", "port": 70000}});
    let path = "spec.conversion.webhookClientConfig.service";
    assert_eq!(
        webhook(service, json!(["v2"])),
        [
            format!("{path}.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive"),
            format!("{path}.path: Invalid value: \"x//y\": must start with a '/'"),
            format!("{path}.path: Invalid value: \"x//y\": segment[0] may not be empty"),
            format!("{path}.path: Invalid value: \"x//y\": segment[1] may not be empty"),
            "spec.conversion.conversionReviewVersions: Invalid value: [\"v2\"]: must include at least one of v1, v1beta1".to_owned(),
        ]
    );
}

#[test]
fn subresources_columns_and_selectable_fields_name_paths() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "color": {"type": "string"}, "more": {"type": "object"}}}}});
    let version = |key: &str, value: Value| {
        let mut definition = definition(&schema);
        definition["spec"]["versions"][0][key] = value;
        complaints(definition, None)
    };
    assert_eq!(
        version(
            "subresources",
            json!({"scale": {"specReplicasPath": ".status.x", "labelSelectorPath": "x"}})
        ),
        [
            r#"spec.subresources.scale.specReplicasPath: Invalid value: ".status.x": should be a json path under .spec"#,
            "spec.subresources.scale.statusReplicasPath: Required value",
            r#"spec.subresources.scale.labelSelectorPath: Invalid value: "x": must be a simple json path starting with ."#,
        ]
    );
    assert_eq!(
        version("additionalPrinterColumns", json!([{"name": "a", "type": "text", "jsonPath": "x"}])),
        [
            r#"spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string"#,
            r#"spec.additionalPrinterColumns[0].JSONPath: Invalid value: "x": must be a simple json path starting with ."#,
        ]
    );
    let select = |path: &str| version("selectableFields", json!([{"jsonPath": path}]));
    assert_eq!(select(".spec.color"), Vec::<String>::new());
    assert_eq!(
        select(".spec.size"),
        [
            r#"spec.selectableFields[0].jsonPath: Invalid value: ".spec.size": is an invalid path: does not refer to a valid field"#
        ]
    );
    assert_eq!(
        select("spec"),
        [
            r#"spec.selectableFields[0].jsonPath: Invalid value: "spec": is an invalid path: expected [ or . but got: spec"#
        ]
    );
    assert_eq!(select(".spec.color[0]").len(), 1);
    assert!(select(".spec.more")[0].contains("must point to a field of type string, boolean or integer"));
}

/// kube-apiserver v1.36.3: what all versions have is a part of the definition in its internal type, and of none of the versions.
#[test]
fn selectable_fields_and_schemas_are_of_all_versions_or_of_each() {
    let of = |versions: [(&[&str], Option<&str>); 2]| {
        let mut definition = plain();
        let version = |(index, (properties, selected)): (usize, (&[&str], Option<&str>))| {
            let named = |name: &&str| ((*name).to_owned(), json!({"type": "string"}));
            let spec =
                json!({"type": "object", "properties": properties.iter().map(named).collect::<Value>()});
            let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
            let mut version = json!({"name": format!("v{}", index + 1), "served": true, "storage": index == 0, "schema": schema});
            if let Some(path) = selected {
                version["selectableFields"] = json!([{"jsonPath": path}]);
            }
            version
        };
        definition["spec"]["versions"] = versions.into_iter().enumerate().map(version).collect();
        complaints(definition, None)
    };
    let (both, one): (&[&str], &[&str]) = (&["a", "b"], &["a"]);
    assert_eq!(of([(both, Some(".spec.a")), (both, Some(".spec.a"))]), Vec::<String>::new());
    assert_eq!(of([(both, Some(".spec.b")), (one, Some(".spec.a"))]), Vec::<String>::new());
    assert_eq!(
        of([(both, Some(".spec.a")), (both, None)]),
        [
            "spec.versions[0].selectableFields: Invalid value: \"\": may only be set when `version.schema.openAPIV3Schema` is not included"
        ]
    );
    assert_eq!(
        of([(both, Some(".spec.a")), (one, Some(".spec.a"))]),
        ["spec.selectableFields: Invalid value: \"\": may only be set when validations.schema is included"]
    );
}

#[test]
fn different_versions_are_named_by_their_place() {
    let two = with(
        plain(),
        "/spec/versions",
        json!([
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
            {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "string"}}},
        ]),
    );
    assert_eq!(
        complaints(two, None),
        [
            r#"spec.versions[1].schema.openAPIV3Schema.type: Invalid value: "string": must be object at the root"#
        ]
    );
}

/// The kinds of a definition that is new.
fn made_of(definition: &Value) -> Vec<crate::Kind> {
    let none = std::collections::BTreeSet::new();
    kinds(definition, &Versions::of(definition, None, &none).into())
}

mod properties {
    use proptest::prelude::*;

    use super::*;
    use crate::values::{json, schema};

    proptest! {
        #[test]
        fn any_json_has_an_answer(mut value in json(), old in json()) {
            default(&mut value);
            let _ = validate(&value, Some(&old));
            let _ = warnings(Version::DEFAULT, &value, Some(&old));
            let _ = made_of(&value);
            status(&mut value, &Kinds::of([]), now());
        }

        #[test]
        fn any_schema_has_an_answer(any in json()) {
            let _ = complaints(definition(&any), None);
        }

        #[test]
        fn structural_schemas_are_valid(schema in schema()) {
            let whole = json!({"type": "object", "properties": {"spec": schema}});
            prop_assert_eq!(complaints(definition(&whole), None), Vec::<String>::new());
        }
    }
}
