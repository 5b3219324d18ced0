use kubewright_spec::Version;
use serde_json::{Value, json};

use super::*;
use crate::{Kinds, Scope, Subresource};

mod empties;

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
fn a_list_without_entries_says_nothing_in_a_schema() {
    for part in [
        json!({"type": "string", "items": []}),
        json!({"type": "string", "not": {"x-kubernetes-validations": []}}),
        json!({"type": "string", "allOf": [{"x-kubernetes-list-map-keys": []}]}),
    ] {
        let schema = json!({"type": "object", "properties": {"a": part}});
        let definition = with(plain(), "/spec/versions/0/schema/openAPIV3Schema", schema);
        assert_eq!(complaints(definition, None), Vec::<String>::new(), "{part}");
    }
}

#[test]
fn items_of_a_map_that_are_a_list_of_schemas_are_told_with_that() {
    let list = json!({"type": "array", "items": [], "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]});
    let schema = json!({"type": "object", "properties": {"a": list}});
    let found = complaints(with(plain(), "/spec/versions/0/schema/openAPIV3Schema", schema), None);
    let told = r#"items: Invalid value: {"Schema":null,"JSONSchemas":[]}: must only have a single schema if x-kubernetes-list-type is map"#;
    assert!(found.iter().any(|found| found.ends_with(told)), "{found:?}");
}

#[test]
fn an_integer_or_text_may_be_said_in_both_ways_at_once() {
    let any_of = json!([{"type": "integer"}, {"type": "string"}]);
    let part = json!({"x-kubernetes-int-or-string": true, "anyOf": any_of, "allOf": [{"anyOf": any_of}, {"pattern": "a"}]});
    let schema = json!({"type": "object", "properties": {"a": part}});
    let definition = with(plain(), "/spec/versions/0/schema/openAPIV3Schema", schema);
    assert_eq!(complaints(definition, None), Vec::<String>::new());
}

#[test]
fn rules_below_a_type_that_is_none_have_no_types() {
    let values = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]});
    let part = json!({"type": "a/b", "additionalProperties": values});
    let schema = json!({"type": "object", "properties": {"a": part}});
    let found = complaints(with(plain(), "/spec/versions/0/schema/openAPIV3Schema", schema), None);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[1].contains("properties[a].additionalProperties.x-kubernetes-validations: Internal error"),
        "{found:?}"
    );
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
fn schemas_must_be_structural() {
    let spec = |spec: Value| json!({"type": "object", "properties": {"spec": spec}});
    let at = ".properties[spec]";
    for (schema, expected) in [
        (
            json!({"properties": {"spec": {"type": "object"}}}),
            vec![".type: Required value: must not be empty at the root".to_owned()],
        ),
        (
            json!({"type": "string"}),
            vec![r#".type: Invalid value: "string": must be object at the root"#.to_owned()],
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            vec![".additionalProperties: Forbidden: must not be used at the root".to_owned()],
        ),
        (
            spec(json!({"properties": {"a": {}}})),
            vec![
                format!(
                    "{at}.properties[a].type: Required value: must not be empty for specified object fields"
                ),
                format!("{at}.type: Required value: must not be empty for specified object fields"),
            ],
        ),
        (spec(json!({"type": "array"})), vec![format!("{at}.items: Required value: must be specified")]),
        (spec(json!({"$ref": "#/x"})), vec![format!("{at}.$ref: Forbidden: $ref is not supported")]),
        (
            spec(json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true})),
            vec![format!(
                "{at}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            )],
        ),
        (
            spec(
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            ),
            vec![format!(
                "{at}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"
            )],
        ),
        (
            spec(json!({"type": "object", "oneOf": [{"type": "object"}]})),
            vec![format!("{at}.oneOf[0].type: Forbidden: must be empty to be structural")],
        ),
        (
            json!({"type": "object", "properties": {"spec": {"type": "object"}}, "anyOf": [{"properties": {"spec": {"properties": {"a": {"minimum": 1}}}}}]}),
            vec![format!(
                "{at}.properties[a]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0]{at}.properties[a]"
            )],
        ),
        (
            spec(json!({"type": "string", "pattern": "("})),
            vec![format!(
                "{at}.pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"
            )],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            vec![".properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified".to_owned()],
        ),
        (
            spec(json!({"type": "object", "x-kubernetes-embedded-resource": true})),
            vec![format!(
                "{at}.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
            )],
        ),
        (spec(json!({"type": "integer", "format": "int32", "nullable": true})), vec![]),
        (spec(json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]})), vec![]),
        (
            spec(json!({"x-kubernetes-int-or-string": true,
                "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "a"}]})),
            vec![],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}}}),
            vec![],
        ),
        (json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), vec![]),
    ] {
        assert_eq!(complaints_of_schema(&schema), expected, "{schema}");
    }
}

#[test]
fn defaults_must_be_valid() {
    let a = |a: Value| json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": a}}}});
    let at = ".properties[spec].properties[a].default";
    for (schema, expected) in [
        (
            a(json!({"type": "string", "enum": ["y"], "default": "z"})),
            format!(r#"{at}: Unsupported value: "z": supported values: "y""#),
        ),
        (
            a(json!({"type": "integer", "default": "x"})),
            format!(r#"{at}: Invalid value: "string":  in body must be of type integer: "string""#),
        ),
        (
            a(json!({"type": "object", "properties": {"b": {"type": "string"}}, "default": {"c": 1}})),
            format!(r#"{at}: Invalid value: {{"c":1}}: must not have unknown fields"#),
        ),
        (
            a(json!({"type": "object", "properties": {"b": {"type": "string"}}, "default": {"b": 1}})),
            format!(r#"{at}.b: Invalid value: "integer": b in body must be of type string: "integer""#),
        ),
    ] {
        assert_eq!(complaints_of_schema(&schema), [expected], "{schema}");
    }
    let top = json!({"type": "object", "properties": {"kind": {"type": "string", "default": "X"}}});
    assert_eq!(
        complaints_of_schema(&top),
        [".properties[kind].default: Forbidden: must not be set in top-level kind"]
    );
}

#[test]
fn list_and_map_types_fit_their_schema() {
    let spec = |spec: Value| json!({"type": "object", "properties": {"spec": spec}});
    let at = ".properties[spec]";
    for (schema, expected) in [
        (
            spec(
                json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map"}),
            ),
            vec![format!(
                "{at}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"
            )],
        ),
        (
            spec(
                json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
            ),
            vec![format!(
                "{at}.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )],
        ),
        (
            spec(
                json!({"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["x"]}),
            ),
            vec![format!(
                r#"{at}.x-kubernetes-list-map-keys: Invalid value: ["x"]: entries must all be names of item properties"#
            )],
        ),
        (
            spec(json!({"type": "string", "x-kubernetes-list-type": "set"})),
            vec![format!(
                r#"{at}.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified"#
            )],
        ),
        (
            spec(json!({"type": "object", "x-kubernetes-map-type": "x"})),
            vec![format!(
                r#"{at}.x-kubernetes-map-type: Unsupported value: "x": supported values: "atomic", "granular""#
            )],
        ),
    ] {
        assert_eq!(complaints_of_schema(&schema), expected, "{schema}");
    }
}

#[test]
fn rules_have_a_form() {
    let rules = |rule: Value| json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-validations": [rule]}}});
    let at = ".properties[spec].x-kubernetes-validations[0]";
    for (rule, expected) in [
        (json!({"rule": " "}), format!("{at}.rule: Required value: rule is not specified")),
        (
            json!({"rule": "a", "message": " "}),
            format!(r#"{at}.message: Invalid value: " ": must be non-empty if specified"#),
        ),
        (
            json!({"rule": "a\nb"}),
            format!("{at}.message: Required value: message must be specified if rule contains line breaks"),
        ),
    ] {
        assert_eq!(complaints_of_schema(&rules(rule)), [expected]);
    }
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
fn with_status_on_the_root_says_little() {
    let mut definition = definition(&json!({"type": "object", "anyOf": [{"required": ["spec"]}]}));
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let found = complaints(definition, None);
    assert!(
        found[0]
            .contains("fields are allowed at the root of the schema if the status subresource is enabled"),
        "{found:?}"
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

#[test]
fn what_is_established_stays() {
    let old = established(plain());
    let changed =
        with(with(old.clone(), "/spec/scope", json!("Cluster")), "/spec/names/kind", json!("Thingy"));
    assert_eq!(
        complaints(changed, Some(&old)),
        [
            r#"spec.scope: Invalid value: "Cluster": field is immutable"#,
            r#"spec.names.kind: Invalid value: "Thingy": field is immutable"#,
        ]
    );
    let mut fresh = plain();
    begin(&mut fresh);
    assert_eq!(
        complaints(with(fresh.clone(), "/spec/scope", json!("Cluster")), Some(&fresh)),
        Vec::<String>::new()
    );
}

#[test]
fn a_version_that_was_stored_must_stay() {
    let old = established(plain());
    let mut gone = with(old.clone(), "/spec/versions/0/name", json!("v2"));
    gone["status"] = old["status"].clone();
    assert_eq!(
        complaints(gone, Some(&old)),
        [
            r#"status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"#
        ]
    );
}

#[test]
fn free_names_are_accepted_and_the_definition_is_established() {
    let mut definition = established(plain());
    let conditions = json!([
        {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found",
            "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]);
    let accepted = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    assert_eq!(
        definition["status"],
        json!({"conditions": conditions, "acceptedNames": accepted, "storedVersions": ["v1"]})
    );
    let once = definition.clone();
    status(&mut definition, &Kinds::of([]), "2027-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(definition, once, "nothing changes when nothing has changed");
}

#[test]
fn names_that_others_have_are_refused() {
    let others = Kinds::of(made_of(&established(plain())).into_iter().map(std::sync::Arc::new));
    let named = with(plain(), "/metadata/name", json!("items.example.com"));
    let mut taken =
        with(named, "/spec/names", json!({"plural": "items", "kind": "Thing", "shortNames": ["things"]}));
    default(&mut taken);
    status(&mut taken, &others, now());
    let condition = |index: usize| {
        let one = &taken["status"]["conditions"][index];
        [text(one, "type"), text(one, "status"), text(one, "reason"), text(one, "message")].map(str::to_owned)
    };
    assert_eq!(
        condition(0),
        ["NamesAccepted", "False", "ListKindConflict", "\"ThingList\" is already in use"]
    );
    assert_eq!(condition(1), ["Established", "False", "NotAccepted", "not all names are accepted"]);
    assert_eq!(taken["status"]["acceptedNames"], json!({"plural": "items", "kind": ""}));
    assert!(made_of(&taken).is_empty());
    // When the other is gone, the names are free.
    status(&mut taken, &Kinds::of([]), now());
    assert_eq!(made_of(&taken).len(), 1);
}

#[test]
fn each_served_version_makes_a_kind() {
    let mut definition = plain();
    definition["spec"]["scope"] = json!("Cluster");
    definition["spec"]["names"]["shortNames"] = json!(["tg"]);
    definition["spec"]["names"]["categories"] = json!(["all"]);
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    definition["spec"]["versions"] = json!([
        {"name": "v1alpha1", "served": true, "storage": false, "deprecated": true, "deprecationWarning": "going away", "schema": schema},
        {"name": "v1beta1", "served": true, "storage": false, "deprecated": true, "schema": schema},
        {"name": "v0", "served": false, "storage": false, "schema": schema},
        {"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {},
            "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
            "selectableFields": [{"jsonPath": ".spec.color"}]},
    ]);
    default(&mut definition);
    let kinds = made_of(&definition);
    let versions: Vec<_> = kinds.iter().map(|kind| kind.version.as_str()).collect();
    assert_eq!(versions, ["v1", "v1beta1", "v1alpha1"]);
    let v1 = &kinds[0];
    assert_eq!(
        (v1.plural.as_str(), v1.singular.as_str(), v1.list_kind.as_str()),
        ("things", "thing", "ThingList")
    );
    assert_eq!((v1.scope, v1.short_names.len(), v1.categories.len()), (Scope::Cluster, 1, 1));
    assert!(v1.has_status());
    let Some(Subresource::CustomScale(paths)) = v1.subresource("scale") else { panic!("there is a scale") };
    assert_eq!((paths.spec_replicas.as_str(), &paths.label_selector), (".spec.n", &None));
    let custom = |index: usize| kinds[index].custom.clone().unwrap();
    assert_eq!(custom(0).selectable_fields, ["spec.color"]);
    assert_eq!((custom(0).definition.as_str(), custom(2).versions.storage()), ("things.example.com", "v1"));
    assert_eq!(custom(0).deprecation, None);
    assert_eq!(
        custom(1).deprecation.as_deref(),
        Some("example.com/v1beta1 Thing is deprecated; use example.com/v1 Thing")
    );
    assert_eq!(custom(2).deprecation.as_deref(), Some("going away"));
}

#[test]
fn a_set_of_objects_is_warned_of_from_v1_37_on_when_it_is_new() {
    let items =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-map-type": "atomic"});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"a": {"type": "array", "x-kubernetes-list-type": "set", "items": items}}}}});
    let definition = definition(&schema);
    assert_eq!(warnings(Version::V1_36, &definition, None), Vec::<String>::new());
    let told = "x-kubernetes-list-type: set for items of type \"object\" is not supported by server-side apply or CEL validation rules";
    assert_eq!(warnings(Version::V1_37, &definition, None), [told]);
    assert_eq!(warnings(Version::V1_37, &definition, Some(&definition)), Vec::<String>::new());
}

#[test]
fn a_format_that_nobody_knows_is_told_when_it_is_new() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"a": {"type": "string", "format": "made-up"}, "b": {"type": "string", "format": "ipv4"}}}}});
    let definition = definition(&schema);
    assert_eq!(warnings(Version::DEFAULT, &definition, None), [r#"unrecognized format "made-up""#]);
    assert_eq!(warnings(Version::DEFAULT, &definition, Some(&definition)), Vec::<String>::new());
    assert_eq!(warnings(Version::DEFAULT, &plain(), None), Vec::<String>::new());
}

#[test]
fn deep_schemas_have_an_answer() {
    for wrap in [
        (|inner| json!({"type": "array", "items": inner})) as fn(Value) -> Value,
        |inner| json!({"type": "object", "additionalProperties": inner}),
        |inner| json!({"type": "object", "not": {"not": inner}}),
    ] {
        let mut schema = json!({"type": "string"});
        let mut object = json!("x");
        for _ in 0..120 {
            schema = wrap(schema);
            object = if schema.get("items").is_some() { json!([object]) } else { json!({"a": object}) };
        }
        let mut definition = definition(&json!({"type": "object", "properties": {"spec": schema}}));
        let built_in = crate::built_in::apiextensions::custom_resource_definition::CUSTOM_RESOURCE_DEFINITION
            .schema(kubewright_spec::Version::DEFAULT);
        assert_eq!(built_in.decode(&mut definition), Ok(vec![]));
        default(&mut definition);
        let _ = validate(&definition, None);
        let kind = made_of(&definition).remove(0);
        let mut object = json!({"spec": object});
        assert!(kind.schema().decode(&mut object).is_ok());
        kind.schema().default(&mut object);
        let _ = kind.schema().value_errors(kubewright_schema::Candidate {
            object: &object,
            old: Some(&object.clone()),
            part: kubewright_schema::Extent::Whole,
            version: kubewright_spec::Version::DEFAULT,
        });
        let _ =
            kind.schema().openapi(kubewright_spec::Version::DEFAULT, &mut std::collections::BTreeMap::new());
    }
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
