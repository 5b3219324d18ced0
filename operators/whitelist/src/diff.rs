//! What differs between two specs, in words for an Event.

use serde_json::Value;

/// At most this many differences are told one by one.
const TOLD: usize = 5;
/// At most this many characters of a value are shown.
const SHOWN: usize = 60;

/// The differences from `found` to `wanted`, one line each (`spec.replicas: 4 -> 1`), in order of their paths. Empty
/// when and only when the two are equal; of many differences the first few and their number are told.
pub(crate) fn differences(path: &str, found: &Value, wanted: &Value) -> Vec<String> {
    let mut all = Vec::new();
    walk(path, Some(found), Some(wanted), &mut all);
    if all.len() > TOLD {
        let more = all.len() - TOLD;
        all.truncate(TOLD);
        all.push(format!("and {more} more"));
    }
    all
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

fn walk(path: &str, found: Option<&Value>, wanted: Option<&Value>, all: &mut Vec<String>) {
    match (found, wanted) {
        (Some(Value::Object(found)), Some(Value::Object(wanted))) => {
            let new = wanted.keys().filter(|key| !found.contains_key(*key));
            let mut keys: Vec<&String> = found.keys().chain(new).collect();
            keys.sort();
            for key in keys {
                walk(&format!("{path}.{key}"), found.get(key), wanted.get(key), all);
            }
        }
        (Some(Value::Array(found)), Some(Value::Array(wanted))) => {
            for index in 0..found.len().max(wanted.len()) {
                walk(&format!("{path}[{index}]"), found.get(index), wanted.get(index), all);
            }
        }
        (found, wanted) if found == wanted => {}
        (found, wanted) => all.push(format!("{path}: {} -> {}", shown(found), shown(wanted))),
    }
}

fn shown(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
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

    #[test]
    fn many_differences_and_long_values_are_cut() {
        let found: Value = (0..9).map(|n| (format!("key{n}"), json!("é".repeat(500)))).collect();
        let told = differences("spec", &found, &json!({}));
        assert_eq!(told.len(), TOLD + 1);
        assert_eq!(told[TOLD], "and 4 more");
        assert!(told[0].chars().count() < 100, "{}", told[0]);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..3).prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[ab]", inner, 0..3).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn there_is_a_difference_when_and_only_when_the_values_are_unequal(a in any_json(), b in any_json()) {
            prop_assert_eq!(differences("spec", &a, &b).is_empty(), a == b);
        }
    }
}
