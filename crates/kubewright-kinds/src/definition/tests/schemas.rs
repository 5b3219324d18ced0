//! What a schema may say.

use super::*;

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
fn rules_below_rules_of_a_type_that_is_none_have_no_types() {
    let values = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]});
    let mut part = json!({"type": "a/b", "additionalProperties": values});
    let of = |part: &Value| {
        let schema = json!({"type": "object", "properties": {"a": part}});
        complaints(with(plain(), "/spec/versions/0/schema/openAPIV3Schema", schema), None)
    };
    let found = of(&part);
    assert_eq!(found.len(), 1, "{found:?}");
    part["x-kubernetes-validations"] = json!([{"rule": "true"}]);
    let found = of(&part);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[1].contains("properties[a].additionalProperties.x-kubernetes-validations: Internal error"),
        "{found:?}"
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
fn values_of_what_is_an_integer_or_a_text_have_no_rules_below_its_own() {
    let mut schema = json!({"type": "object", "properties": {"a": {
        "type": "object", "x-kubernetes-int-or-string": true, "maxProperties": 5,
        "additionalProperties": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]}
    }}});
    assert_eq!(complaints_of_schema(&schema), Vec::<String>::new());
    schema["properties"]["a"]["x-kubernetes-validations"] = json!([{"rule": "true"}]);
    assert_eq!(
        complaints_of_schema(&schema),
        [
            ".properties[a].additionalProperties.x-kubernetes-validations: Internal error: failed to convert to declType for CEL validation rules"
        ]
    );
}

#[test]
fn a_default_in_a_combination_is_one_whatever_it_is() {
    for default in [json!([]), json!(""), json!(false), json!(0)] {
        let schema = json!({"type": "object", "anyOf": [{"default": default}]});
        assert_eq!(
            complaints_of_schema(&schema),
            [".anyOf[0].default: Forbidden: must be undefined to be structural"],
            "{default}"
        );
    }
    let none = json!({"type": "object", "anyOf": [{"default": null}]});
    assert!(complaints_of_schema(&none).is_empty());
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
            a(json!({"type": "string", "format": "made-up", "default": 5})),
            format!(r#"{at}: Invalid value: "int64":  in body must be of type made-up: "int64""#),
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
