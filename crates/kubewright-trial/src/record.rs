//! Record: what a program notes in an annotation of an object of how the object was when it looked at it.

use serde_json::Value;

/// Stands for a record.
const RECORD: &str = "<the object as it was>";

/// Marks the annotations whose text is the object itself in JSON, or its spec, as in one of its versions: which of them was looked at last
/// is the program's own affair, and what follows of it is compared where it follows.
pub(crate) fn mark_records(object: &mut Value, versions: &[&Value]) {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    for text in annotations.into_iter().flat_map(|all| all.values_mut()) {
        let record = text.as_str().filter(|text| text.starts_with('{'));
        let Some(Ok(record)) = record.map(serde_json::from_str::<Value>) else { continue };
        if versions.iter().any(|version| is_record(&record, version)) {
            *text = RECORD.into();
        }
    }
}

fn is_record(record: &Value, version: &Value) -> bool {
    let spec = &version["spec"];
    says_something(record) && (is_part(record, version) || is_part(record, spec) && is_part(spec, record))
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => fields.values().any(says_something),
        _ => true,
    }
}

/// Whether all that a value says another says, too.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(_)) => {
            part.iter().all(|(name, part)| is_part(part, &whole[name]))
        }
        (Value::Array(part), Value::Array(whole)) if part.len() == whole.len() => {
            part.iter().zip(whole).all(|(part, whole)| is_part(part, whole))
        }
        _ => part == whole || !says_something(part),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn marked(record: &str, versions: &[Value]) -> bool {
        let mut object =
            json!({"metadata": {"annotations": {"kopf.zalando.org/last-handled-configuration": record}}});
        mark_records(&mut object, &versions.iter().collect::<Vec<_>>());
        object["metadata"]["annotations"]["kopf.zalando.org/last-handled-configuration"] == RECORD
    }

    #[test]
    fn what_an_annotation_notes_of_an_earlier_version_is_a_record() {
        let of = |size: u8| {
            json!({"kind": "Page", "metadata": {"name": "a", "uid": "1", "labels": {"x": "y"}},
                "spec": {"size": size, "hosts": [{"name": "h"}]}, "status": {}})
        };
        let versions = [of(1), of(2)];
        let kopf = |size: u8| {
            let record = json!({"spec": {"size": size, "hosts": [{"name": "h"}]}, "metadata": {"labels": {"x": "y"}, "annotations": {}}});
            format!("{record}\n")
        };
        assert!(marked(&kopf(1), &versions) && marked(&kopf(2), &versions));
        assert!(!marked(&kopf(3), &versions), "it was never so");
        assert!(marked(r#"{"hosts": [{"name": "h"}], "size": 2}"#, &versions), "its spec alone");
        assert!(!marked(r#"{"size": 2}"#, &versions), "a part of its spec may be meant for something else");
        assert!(!marked("{}", &versions) && !marked(r#"{"spec": {}}"#, &versions));
    }
}
