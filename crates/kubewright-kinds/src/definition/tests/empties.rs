//! Lists and maps without entries in schemas: to some rules they are there, to others they are not.

use serde_json::{Value, json};

use super::{complaints, complaints_of_schema, plain, with};

fn of_field(field: &Value) -> Vec<String> {
    complaints_of_schema(&json!({"type": "object", "properties": {"a": field}}))
}

#[test]
fn dependencies_are_refused_even_without_entries_and_other_maps_are_not() {
    assert_eq!(
        of_field(&json!({"type": "object", "dependencies": {}})),
        [".properties[a].dependencies: Forbidden: dependencies is not supported"]
    );
    assert_eq!(of_field(&json!({"type": "object", "definitions": {}, "patternProperties": {}})), [""; 0]);
}

#[test]
fn an_integer_or_text_may_say_lists_that_are_made_one_by_one() {
    let of = |integer: Value| {
        let any_of = json!([integer, {"type": "string"}]);
        of_field(&json!({"x-kubernetes-int-or-string": true, "anyOf": any_of})).len()
    };
    for plain in [json!({"enum": []}), json!({"allOf": [], "items": []}), json!({"definitions": {}})] {
        let mut integer = plain;
        integer["type"] = "integer".into();
        assert_eq!(of(integer), 0);
    }
    for more in [json!({"required": []}), json!({"properties": {}}), json!({"enum": [1]})] {
        let mut integer = more;
        integer["type"] = "integer".into();
        assert!(of(integer.clone()) > 0, "{integer}");
    }
}

#[test]
fn metadata_may_say_lists_that_are_made_one_by_one() {
    let of = |metadata: Value| {
        complaints_of_schema(&json!({"type": "object", "properties": {"metadata": metadata}})).len()
    };
    assert_eq!(of(json!({"type": "object", "enum": [], "anyOf": []})), 0);
    assert_eq!(of(json!({"type": "object", "required": []})), 1);
}

#[test]
fn versions_have_in_common_what_is_nothing_in_one_and_absent_in_the_other() {
    let version = |name: &str, columns: Value| {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        json!({"name": name, "served": true, "storage": true, "schema": schema, "additionalPrinterColumns": columns})
    };
    let versions = json!([version("v1", json!([])), version("v2", json!(null))]);
    let told = complaints(with(plain(), "/spec/versions", versions), None);
    let printed = told.iter().find(|one| one.contains(r#""AdditionalPrinterColumns":"#)).unwrap();
    assert!(!printed.contains(r#""AdditionalPrinterColumns":[]"#), "{printed}");
}
