//! What rules say of objects. The texts were asked of kube-apiserver v1.36.

use kubewright_spec::Version;
use serde_json::{Value, json};

use super::super::{Candidate, Extent, Schema};

fn schema(spec: &Value) -> Schema {
    Schema::custom(&json!({"type": "object", "properties": {"spec": spec}}))
}

/// The errors and warnings of a write of `spec`, over `old`.
fn findings(schema: &Schema, spec: &Value, old: Option<&Value>) -> (Vec<String>, Vec<String>) {
    let object =
        |spec: &Value| json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}, "spec": spec});
    let (object, old) = (object(spec), old.map(object));
    let candidate =
        Candidate { object: &object, old: old.as_ref(), part: Extent::Whole, version: Version::DEFAULT };
    let (errors, warnings) = schema.rule_errors(candidate, &schema.value_errors(candidate));
    (errors.iter().map(ToString::to_string).collect(), warnings)
}

fn errors(schema: &Schema, spec: &Value, old: Option<&Value>) -> Vec<String> {
    findings(schema, spec, old).0
}

fn with_rules(schema: &Value, rules: &Value) -> Value {
    let mut schema = schema.clone();
    schema["x-kubernetes-validations"] = rules.clone();
    schema
}

#[test]
fn a_broken_rule_is_told_by_its_message_reason_and_field() {
    let number = with_rules(
        &json!({"type": "integer"}),
        &json!([{"rule": "self > 2"}, {"rule": "self != 7", "message": " no seven ", "reason": "FieldValueForbidden"},
            {"rule": "self != 8", "reason": "FieldValueDuplicate"}, {"rule": "self != 9", "reason": "FieldValueRequired"}]),
    );
    let object = with_rules(
        &json!({"type": "object", "properties": {"x": {"type": "integer"}}}),
        &json!([{"rule": "self.x > 1", "fieldPath": ".x"}, {"rule": "self.x > 0", "reason": "FieldValueDuplicate"}]),
    );
    let schema = schema(&json!({"type": "object", "properties": {"a": number, "o": object}}));
    for (spec, expected) in [
        (json!({"a": 3}), vec![]),
        (json!({"a": 1}), vec!["spec.a: Invalid value: 1: failed rule: self > 2"]),
        (json!({"a": 7}), vec!["spec.a: Forbidden: no seven"]),
        (json!({"a": 8}), vec!["spec.a: Duplicate value: 8"]),
        (json!({"a": 9}), vec!["spec.a: Required value: failed rule: self != 9"]),
        (
            json!({"o": {"x": 0}}),
            vec!["spec.o.x: Invalid value: failed rule: self.x > 1", "spec.o: Duplicate value"],
        ),
        (
            json!({"o": {}}),
            vec![
                r#"spec.o: Invalid value: "object": no such key: x evaluating rule: self.x > 1"#,
                r#"spec.o: Invalid value: "object": no such key: x evaluating rule: self.x > 0"#,
            ],
        ),
    ] {
        assert_eq!(errors(&schema, &spec, None), expected, "{spec}");
    }
}

#[test]
fn an_expression_makes_the_message_where_it_can() {
    let text = with_rules(
        &json!({"type": "string", "maxLength": 20}),
        &json!([{"rule": "self != 'bad'", "messageExpression": "'got ' + self"},
            {"rule": "self != 'lines'", "messageExpression": "'a\\nb'", "message": "fallback"},
            {"rule": "self != 'empty'", "messageExpression": "' '"},
            {"rule": "self != 'fails'", "messageExpression": "string(1 / 0)"}]),
    );
    let schema = schema(&text);
    for (spec, detail) in [
        ("bad", "got bad"),
        ("lines", "fallback"),
        ("empty", "failed rule: self != 'empty'"),
        ("fails", "failed rule: self != 'fails'"),
    ] {
        let expected = format!("spec: Invalid value: \"{spec}\": {detail}");
        assert_eq!(errors(&schema, &json!(spec), None), [expected]);
    }
}

#[test]
fn a_transition_is_checked_where_both_states_are_known() {
    let grows = with_rules(
        &json!({"type": "integer"}),
        &json!([{"rule": "self >= oldSelf", "message": "no shrink"}]),
    );
    let first = with_rules(
        &json!({"type": "integer"}),
        &json!([{"rule": "oldSelf.hasValue() ? self > oldSelf.value() : self == 1", "optionalOldSelf": true,
            "message": "first 1, then more"}]),
    );
    let schema = schema(&json!({"type": "object", "properties": {
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": grows}}},
        "first": first}}));
    let list = |elements: &[(&str, i64)]| {
        let elements: Vec<Value> = elements.iter().map(|(k, v)| json!({"k": k, "v": v})).collect();
        json!({"list": elements})
    };
    let old = list(&[("a", 3), ("b", 4)]);
    assert_eq!(errors(&schema, &list(&[("b", 4), ("c", 1), ("a", 5)]), Some(&old)), Vec::<String>::new());
    let shrunk = errors(&schema, &list(&[("b", 3), ("a", 3)]), Some(&old));
    assert_eq!(shrunk, ["spec.list[0].v: Invalid value: 3: no shrink"]);
    let wrong = |value: i64| vec![format!("spec.first: Invalid value: {value}: first 1, then more")];
    assert_eq!(errors(&schema, &json!({"first": 2}), None), wrong(2));
    assert_eq!(errors(&schema, &json!({"first": 2}), Some(&json!({"first": 1}))), Vec::<String>::new());
    assert_eq!(errors(&schema, &json!({"first": 1}), Some(&json!({"first": 1}))), wrong(1));
}

#[test]
fn what_is_unchanged_is_only_warned_of() {
    let small =
        with_rules(&json!({"type": "integer"}), &json!([{"rule": "self < 4", "message": "too large"}]));
    let items = json!({"type": "object", "properties": {"k": {"type": "string"}, "v": small}});
    let schema = schema(&json!({"type": "object", "properties": {
        "a": small, "b": {"type": "boolean"}, "atomic": {"type": "array", "items": items},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items}}}));
    let old = json!({"a": 5, "atomic": [{"v": 5}], "keyed": [{"k": "x", "v": 5}]});
    let spec =
        json!({"a": 5, "b": true, "atomic": [{"v": 5}], "keyed": [{"k": "y", "v": 1}, {"k": "x", "v": 5}]});
    let warnings = ["spec.a", "spec.atomic[0].v", "spec.keyed[1].v"]
        .map(|field| format!("{field}: Invalid value: 5: too large"));
    assert_eq!(findings(&schema, &spec, Some(&old)), (vec![], warnings.to_vec()));
    let moved = json!({"a": 6, "atomic": [{}, {"v": 5}], "keyed": [{"k": "z", "v": 5}]});
    let expected = [("spec.a", 6), ("spec.atomic[1].v", 5), ("spec.keyed[0].v", 5)]
        .map(|(field, value)| format!("{field}: Invalid value: {value}: too large"));
    assert_eq!(findings(&schema, &moved, Some(&old)), (expected.to_vec(), vec![]));
}

#[test]
fn rules_are_not_asked_of_objects_that_they_could_not_bear() {
    let schema = schema(&with_rules(
        &json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
        &json!([{"rule": "self.a > 1"}]),
    ));
    assert_eq!(
        errors(&schema, &json!({"a": "x"}), None),
        [
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
        ]
    );
}

#[test]
fn the_root_sees_its_type_and_names_and_embedded_resources_theirs() {
    let embedded = with_rules(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &json!([{"rule": "self.kind == 'Foo' && self.metadata.name == 'x'", "message": "not x"}]),
    );
    let mut whole = json!({"type": "object", "properties": {"spec": embedded}});
    whole["x-kubernetes-validations"] = json!([{"rule": "self.metadata.name != 'a'", "message": "bad name"}]);
    let schema = Schema::custom(&whole);
    let spec = json!({"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "y"}});
    assert_eq!(
        errors(&schema, &spec, None),
        ["<nil>: Invalid value: bad name", "spec: Invalid value: not x"]
    );
}

#[test]
fn one_object_may_cost_so_much_and_no_more() {
    let pairs = with_rules(
        &json!({"type": "array", "items": {"type": "integer"}}),
        &json!([{"rule": "self.all(x, self.exists(y, y == x))"}]),
    );
    let schema = schema(&json!({"type": "object", "properties": {"l": pairs, "m": {"type": "object"}}}));
    let numbers: Vec<i64> = (0..2000).collect();
    assert_eq!(
        errors(&schema, &json!({"l": numbers}), None),
        [
            r#"spec.l: Invalid value: "array": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: self.all(x, self.exists(y, y == x))"#
        ]
    );
}

mod paths {
    use super::super::super::structural;
    use super::super::field_path::follow;
    use serde_json::json;

    #[test]
    fn a_path_names_a_field_or_says_why_not() {
        let node = structural::node(&json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b.c": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "l": {"type": "array", "items": {"type": "string"}}}}));
        for (path, expected) in [
            (".a", Ok("a")),
            ("['a']['b.c']", Ok("a.b.c")),
            (".m.key", Ok("m[key]")),
            (".m['it\\'s']", Ok("m[it's]")),
            (".z", Err("does not refer to a valid field")),
            (".l[0]", Err("expected single quoted string but got 0")),
            (".l.x", Err("does not refer to a valid field")),
            ("a", Err("expected [ or . but got: a")),
            (".", Err("unexpected end of JSON path")),
            ("['a'", Err("unexpected end of JSON path")),
            ("['a'.", Err("expected ] but got .")),
            (".m['\\q']", Err("invalid string literal: invalid escape char \\q")),
        ] {
            let found = follow(path, &node, true).map(|found| found.path);
            assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{path}");
        }
        let found = follow(".a['b.c']", &node, false).map(|found| found.path);
        assert_eq!(found, Err("array notation is not allowed".to_owned()));
    }
}

proptest::proptest! {
    #[test]
    fn any_object_has_an_answer(object in super::super::tests::values::json(), old in super::super::tests::values::json()) {
        let schema = schema(&with_rules(
            &json!({"type": "object", "properties": {"a": with_rules(&json!({"type": "string"}), &json!([{"rule": "self.size() < 3"}])),
                "b": {"type": "array", "items": with_rules(&json!({"type": "integer"}), &json!([{"rule": "self > 1"}]))}}}),
            &json!([{"rule": "has(self.a) && oldSelf.a == self.a"}]),
        ));
        let candidate = Candidate { object: &object, old: Some(&old), part: Extent::Whole, version: Version::DEFAULT };
        let _ = schema.rule_errors(candidate, &[]);
        let _ = findings(&schema, &object, Some(&old));
    }
}

/// Each element is evaluated by itself: what they compile is bounded together.
#[test]
fn patterns_of_many_elements_are_not_compiled_without_end() {
    let item = with_rules(&json!({"type": "string"}), &json!([{"rule": "!'a'.matches(self)"}]));
    let schema = schema(&json!({"type": "array", "items": item}));
    let patterns = |many: usize| Value::Array(vec![json!("^[a-z]{900}$"); many]);
    assert_eq!(errors(&schema, &patterns(10), None), Vec::<String>::new());
    let told = errors(&schema, &patterns(1000), None);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].ends_with("running out of cost budget, no further validation rules will be run"),
        "{told:?}"
    );
}
