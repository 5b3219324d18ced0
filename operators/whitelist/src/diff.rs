//! What differs between two specs, in words for an Event.

use kubewright::Differences;
use serde_json::Value;

/// How they are told: few, as an Event is short, and items by their place.
const SHORT: Differences =
    Differences { most: 5, longest: 60, nothing: "nothing", named_items: false, ignored: &[] };

/// The differences from `found` to `wanted`, one line each (`spec.replicas: 4 -> 1`), in order of their paths. Empty
/// when and only when the two are equal; of many differences the first few and their number are told.
pub(crate) fn differences(path: &str, found: &Value, wanted: &Value) -> Vec<String> {
    SHORT.between(path, found, wanted)
}

/// As [`differences`], of those fields alone that `wanted` has; of an element of a list that has a name, of the one of that name.
pub(crate) fn missing(path: &str, found: &Value, wanted: &Value) -> Vec<String> {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            let field = |(key, wanted): (&String, &Value)| {
                missing(&format!("{path}.{key}"), found.get(key).unwrap_or(&Value::Null), wanted)
            };
            wanted.iter().flat_map(field).collect()
        }
        (Value::Array(found), Value::Array(wanted)) => {
            let element = |(index, wanted): (usize, &Value)| {
                let named =
                    found.iter().find(|one| !wanted["name"].is_null() && one["name"] == wanted["name"]);
                let found = named.or(found.get(index)).unwrap_or(&Value::Null);
                missing(&format!("{path}[{index}]"), found, wanted)
            };
            wanted.iter().enumerate().flat_map(element).collect()
        }
        (found, wanted) => differences(path, found, wanted),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_is_told_by_its_path_with_both_values() {
        let found = json!({"replicas": 4, "containers": [{"image": "httpd"}, {"image": "extra"}]});
        let wanted = json!({"replicas": 1, "containers": [{"image": "nginx"}], "paused": false});
        assert_eq!(
            differences("spec", &found, &wanted),
            [
                r#"spec.containers[0].image: "httpd" -> "nginx""#,
                r#"spec.containers[1]: {"image":"extra"} -> nothing"#,
                "spec.paused: nothing -> false",
                "spec.replicas: 4 -> 1",
            ]
        );
    }

    #[test]
    fn what_is_not_wanted_is_not_missing() {
        let wanted = json!({"containers": [{"name": "nginx", "image": "nginx"}], "labels": {"a": "b"}});
        let mut found = json!({
            "replicas": 4, "labels": {"a": "b", "c": "d"},
            "containers": [{"name": "extra"}, {"name": "nginx", "image": "nginx", "ports": []}],
        });
        assert_eq!(missing("spec", &found, &wanted), [""; 0]);
        found["containers"][1]["image"] = json!("httpd");
        assert_eq!(missing("spec", &found, &wanted), [r#"spec.containers[0].image: "httpd" -> "nginx""#]);
    }
}
