use kubewright_spec::Version;
use serde_json::{Value, json};

use super::super::structural;

/// The complaints about the `spec` of an object.
fn complaints(spec_schema: &Value, spec: &Value) -> Vec<String> {
    complaints_of_update(spec_schema, spec, None)
}

fn complaints_of_update(spec_schema: &Value, spec: &Value, old: Option<&Value>) -> Vec<String> {
    let root = structural::node(&json!({"type": "object", "properties": {"spec": spec_schema}}));
    let object = |spec: &Value| json!({"apiVersion": "g/v1", "kind": "K", "metadata": {}, "spec": spec});
    let old = old.map(object);
    let (object, old) = (object(spec), old.as_ref());
    let mut found = super::values(Version::DEFAULT, &root, &object, old);
    found.extend(super::embedded(&root, &object));
    found.extend(super::duplicates(&root, &object, old));
    found.iter().map(ToString::to_string).collect()
}

#[allow(clippy::needless_pass_by_value)]
fn fields(fields: Value) -> Value {
    json!({"type": "object", "properties": fields})
}

#[test]
fn bounds_are_told_in_the_words_of_kubernetes() {
    for (schema, value, expected) in [
        (
            json!({"type": "integer", "minimum": 1}),
            json!(0),
            "0: spec.a in body should be greater than or equal to 1",
        ),
        (
            json!({"type": "integer", "maximum": 10}),
            json!(11),
            "11: spec.a in body should be less than or equal to 10",
        ),
        (
            json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}),
            json!(0),
            "0: spec.a in body should be greater than 0",
        ),
        (
            json!({"type": "number", "maximum": 1.5, "exclusiveMaximum": true}),
            json!(1.5),
            "1.5: spec.a in body should be less than 1.5",
        ),
        (
            json!({"type": "integer", "multipleOf": 5}),
            json!(7),
            "7: spec.a in body should be a multiple of 5",
        ),
        (
            json!({"type": "number", "multipleOf": 0.5}),
            json!(0.7),
            "0.7: spec.a in body should be a multiple of 0.5",
        ),
        (
            json!({"type": "string", "minLength": 2}),
            json!("a"),
            r#""a": spec.a in body should be at least 2 chars long"#,
        ),
        (
            json!({"type": "string", "pattern": "^[a-z]+$"}),
            json!("A1"),
            r#""A1": spec.a in body should match '^[a-z]+$'"#,
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            json!([]),
            "0: spec.a in body should have at least 1 items",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}),
            json!({}),
            "0: spec.a in body should have at least 1 properties",
        ),
    ] {
        assert_eq!(
            complaints(&fields(json!({"a": schema})), &json!({"a": value})),
            [format!("spec.a: Invalid value: {expected}")]
        );
    }
}

#[test]
fn sizes_that_are_exceeded_have_words_of_their_own() {
    let schema = fields(json!({
        "text": {"type": "string", "maxLength": 5},
        "list": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1}}));
    assert_eq!(
        complaints(&schema, &json!({"text": "abcdef", "list": ["a", "b", "c"], "map": {"a": 1, "b": 2}})),
        [
            "spec.list: Too many: 3: must have at most 2 items",
            "spec.map: Too many: 2: must have at most 1 item",
            "spec.text: Too long: may not be more than 5 bytes",
        ]
    );
    assert_eq!(
        complaints(&schema, &json!({"text": "äöüäö"})),
        Vec::<String>::new(),
        "characters are counted"
    );
}

#[test]
fn types_are_told_by_their_names() {
    let schema =
        fields(json!({"flag": {"type": "boolean"}, "list": {"type": "array", "items": {"type": "string"}},
        "name": {"type": "string"}, "nested": {"type": "object"}, "size": {"type": "integer"}}));
    assert_eq!(
        complaints(&schema, &json!({"flag": "yes", "list": "x", "name": 5, "nested": [], "size": "5"})),
        [
            r#"spec.flag: Invalid value: "string": spec.flag in body must be of type boolean: "string""#,
            r#"spec.list: Invalid value: "string": spec.list in body must be of type array: "string""#,
            r#"spec.name: Invalid value: "integer": spec.name in body must be of type string: "integer""#,
            r#"spec.nested: Invalid value: "array": spec.nested in body must be of type object: "array""#,
            r#"spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#,
        ]
    );
    assert_eq!(
        complaints(&schema, &json!({"size": 5.0})),
        Vec::<String>::new(),
        "a whole number is an integer"
    );
    assert_eq!(
        complaints(&schema, &json!({"size": 1.5})),
        [
            r#"spec.size: Invalid value: "number": spec.size in body must be of type integer: "number""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.size"#,
        ]
    );
    assert_eq!(
        complaints(&schema, &json!({"name": null})),
        [r#"spec.name: Invalid value: "null": spec.name in body must be of type string: "null""#]
    );
}

#[test]
fn formats_of_numbers_are_ranges() {
    let schema = fields(
        json!({"i32": {"type": "integer", "format": "int32"}, "i64": {"type": "integer", "format": "int64"}}),
    );
    assert_eq!(
        complaints(&schema, &json!({"i32": 3_000_000_000_u32})),
        [r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.i32"#]
    );
    assert_eq!(
        complaints(&schema, &json!({"i64": 1e30})),
        [
            r#"spec.i64: Invalid value: "float64": spec.i64 in body must be of type int64: "float64""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int64 in spec.i64"#,
        ]
    );
}

#[test]
fn before_v1_36_numbers_are_of_any_range() {
    let spec = json!({"size": {"type": "integer"}, "i32": {"type": "integer", "format": "int32"},
        "i64": {"type": "integer", "format": "int64"}, "f": {"type": "number", "format": "float"}});
    let root = structural::node(&fields(spec));
    let told = |object: Value| {
        let found = super::values(Version::V1_35, &root, &object, None);
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let wrong = |field: &str| {
        format!(r#"{field}: Invalid value: "number": {field} in body must be of type integer: "number""#)
    };
    assert_eq!(told(json!({"i32": 3_000_000_000_u32, "f": 1e300})), Vec::<String>::new());
    assert_eq!(told(json!({"size": 1.5})), [wrong("size")]);
    assert_eq!(told(json!({"i64": 1e30})), [wrong("i64")]);
}

#[test]
fn formats_of_text_are_checked_when_they_are_known() {
    let schema = fields(
        json!({"made": {"type": "string", "format": "made-up"}, "time": {"type": "string", "format": "date-time"}}),
    );
    assert_eq!(
        complaints(&schema, &json!({"made": "anything", "time": "yesterday"})),
        [
            r#"spec.time: Invalid value: "yesterday": spec.time in body must be of type date-time: "yesterday""#
        ]
    );
}

#[test]
fn an_int_or_string_is_one_of_both() {
    let schema = fields(
        json!({"port": {"x-kubernetes-int-or-string": true}, "pct": {"x-kubernetes-int-or-string": true, "pattern": "^[0-9]+%$"}}),
    );
    assert_eq!(complaints(&schema, &json!({"port": 80, "pct": 5})), Vec::<String>::new());
    assert_eq!(complaints(&schema, &json!({"port": "http", "pct": "5%"})), Vec::<String>::new());
    assert_eq!(
        complaints(&schema, &json!({"port": true, "pct": "ten"})),
        [
            r#"spec.pct: Invalid value: "ten": spec.pct in body should match '^[0-9]+%$'"#,
            r#"spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean""#,
        ]
    );
    assert_eq!(
        complaints(&schema, &json!({"port": 1.5})),
        [r#"spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number""#]
    );
}

#[test]
fn only_nullable_values_are_null() {
    let schema =
        fields(json!({"n": {"type": "string", "nullable": true}, "o": {"type": "object", "nullable": true}}));
    assert_eq!(complaints(&schema, &json!({"n": null, "o": null})), Vec::<String>::new());
}

#[test]
fn enumerations_are_told_in_their_order() {
    let schema = fields(
        json!({"color": {"type": "string", "enum": ["red", "green"]}, "nums": {"type": "number", "enum": [1, 2.5]}}),
    );
    assert_eq!(complaints(&schema, &json!({"color": "red", "nums": 2.5})), Vec::<String>::new());
    assert_eq!(complaints(&schema, &json!({"nums": 1.0})), Vec::<String>::new());
    assert_eq!(
        complaints(&schema, &json!({"color": "blue", "nums": 2})),
        [
            r#"spec.color: Unsupported value: "blue": supported values: "red", "green""#,
            r#"spec.nums: Unsupported value: 2: supported values: "1", "2.5""#,
        ]
    );
}

#[test]
fn what_is_required_is_told_in_its_order() {
    let schema = json!({"type": "object", "required": ["b", "a"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    assert_eq!(complaints(&schema, &json!({})), ["spec.b: Required value", "spec.a: Required value"]);
}

#[test]
fn maps_and_lists_are_told_by_key_and_index() {
    let schema = fields(json!({"map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"deep": {"type": "integer", "minimum": 0}}}}}));
    assert_eq!(
        complaints(&schema, &json!({"map": {"a": "x"}, "list": [{"deep": 1}, {"deep": -1}]})),
        [
            "spec.list[1].deep: Invalid value: -1: spec.list[1].deep in body should be greater than or equal to 0",
            r#"spec.map.a: Invalid value: "string": spec.map.a in body must be of type integer: "string""#,
        ]
    );
    let closed = fields(json!({"none": {"type": "object", "additionalProperties": false}}));
    assert_eq!(
        complaints(&closed, &json!({"none": {"x": 1}})),
        [r#"spec.none: Invalid value: "x": spec.none.x in body is a forbidden property"#]
    );
}

#[test]
fn combinations_tell_themselves_and_the_best_failure() {
    let of = |logic: Value| {
        let mut schema = fields(json!({"a": {"type": "integer"}, "b": {"type": "string"}}));
        for (key, value) in logic.as_object().unwrap() {
            schema[key] = value.clone();
        }
        schema
    };
    let any = of(
        json!({"anyOf": [{"required": ["a"]}, {"properties": {"b": {"minLength": 3}}, "required": ["b"]}]}),
    );
    assert_eq!(complaints(&any, &json!({"a": 1})), Vec::<String>::new());
    assert_eq!(
        complaints(&any, &json!({"b": "x"})),
        [
            r#"<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)"#,
            r#"spec.b: Invalid value: "x": spec.b in body should be at least 3 chars long"#,
        ],
        "the second alternative is nearer"
    );
    let one = of(json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}));
    assert_eq!(
        complaints(&one, &json!({})),
        [
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid"#,
            "spec.a: Required value",
        ]
    );
    assert_eq!(
        complaints(&one, &json!({"a": 1, "b": "x"})),
        [
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives"#
        ]
    );
    let all = of(json!({"allOf": [{"required": ["a"]}, {"minProperties": 0}]}));
    assert_eq!(
        complaints(&all, &json!({})),
        [
            "spec.a: Required value",
            r#"<nil>: Invalid value: "": "spec" must validate all the schemas (allOf)"#
        ]
    );
    let not = of(json!({"not": {"required": ["a"]}}));
    assert_eq!(
        complaints(&not, &json!({"a": 1})),
        [r#"<nil>: Invalid value: "": "spec" must not validate the schema (not)"#]
    );
}

#[test]
fn sets_and_maps_have_no_element_twice() {
    let schema = fields(json!({
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "map": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer"}}},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "n"]}}));
    assert_eq!(
        complaints(&schema, &json!({"set": ["a", "b"], "map": [{"k": "a", "n": 1}, {"k": "a", "n": 2}]})),
        Vec::<String>::new()
    );
    assert_eq!(
        complaints(
            &schema,
            &json!({"set": ["a", "b", "a", "a"], "map": [{"k": "a", "n": 1}, {"k": "a", "n": 1, "x": 1}]})
        ),
        [r#"spec.map[1]: Duplicate value: {"k":"a","n":1}"#, r#"spec.set[2]: Duplicate value: "a""#]
    );
    let twice = json!({"set": ["a", "a"]});
    assert_eq!(
        complaints_of_update(&schema, &json!({"set": ["a", "a", "b"]}), Some(&twice)),
        Vec::<String>::new(),
        "it was so before"
    );
}

#[test]
fn embedded_resources_say_what_they_are() {
    let schema = fields(
        json!({"pod": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}),
    );
    assert_eq!(
        complaints(&schema, &json!({"pod": {}})),
        ["spec.pod.apiVersion: Required value", "spec.pod.kind: Required value"]
    );
    assert_eq!(
        complaints(&schema, &json!({"pod": {"apiVersion": "v1", "kind": "Pod"}})),
        Vec::<String>::new()
    );
    assert_eq!(
        complaints(&schema, &json!({"pod": {"apiVersion": "", "kind": "Pod"}})),
        [r#"spec.pod.apiVersion: Invalid value: "": must not be empty"#]
    );
}

#[test]
fn what_was_wrong_before_and_is_unchanged_is_let_pass() {
    let schema = json!({"type": "object", "required": ["c"], "properties": {
        "a": {"type": "integer", "maximum": 1}, "b": {"type": "string"}, "c": {"type": "string"},
        "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items":
            {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 1}}}}}});
    let old = json!({"a": 5, "b": "x", "items": [{"k": "a", "v": 5}, {"k": "b", "v": 0}]});
    assert_eq!(complaints_of_update(&schema, &old, Some(&old)), Vec::<String>::new());
    let changed = json!({"a": 5, "b": "y", "items": [{"k": "b", "v": 7}, {"k": "a", "v": 5}]});
    assert_eq!(
        complaints_of_update(&schema, &changed, Some(&old)),
        [
            "spec.items[0].v: Invalid value: 7: spec.items[0].v in body should be less than or equal to 1",
            "spec.c: Required value",
        ],
        "what stands in the changed part counts"
    );
}

#[test]
fn many_mistakes_are_told_in_time() {
    let schema = fields(
        json!({"list": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}},
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}}),
    );
    let list: Vec<Value> = (0..5_000).map(|number| json!({"k": number})).collect();
    let old: Vec<Value> = (0..5_000).map(|number| json!({"k": number, "x": 1})).collect();
    assert_eq!(
        complaints_of_update(&schema, &json!({"list": list}), Some(&json!({"list": old}))).len(),
        0,
        "the keys are as they were"
    );
    let fresh: Vec<Value> = (0..5_000).map(|number| json!({"k": -number - 1})).collect();
    assert_eq!(
        complaints_of_update(&schema, &json!({"list": fresh}), Some(&json!({"list": old}))).len(),
        5_000
    );
}
