//! What is different between two versions of an object, for people.

use serde_json::Value;

/// The most differences that are told one by one.
const MOST: usize = 16;
/// The most characters of a value.
const LONGEST: usize = 60;
/// What changes with every write and says nothing of it.
const NOISE: [&str; 2] = ["metadata.managedFields", "metadata.resourceVersion"];

/// The differences, each as `path: old -> new`. Items of lists are told apart by `name`, `type` or `uid`, where all of
/// them have one.
pub(crate) fn differences(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", Some(old), Some(new), &mut found);
    if found.len() > MOST {
        let more = found.len() - MOST;
        found.truncate(MOST);
        found.push(format!("and {more} more"));
    }
    found
}

fn compare(path: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<String>) {
    if old == new || NOISE.contains(&path) {
        return;
    }
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                let dot = if path.is_empty() { "" } else { "." };
                compare(&format!("{path}{dot}{key}"), old.get(key), new.get(key), found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => items(path, old, new, found),
        _ => found.push(format!("{path}: {} -> {}", told(old), told(new))),
    }
}

fn items(path: &str, old: &[Value], new: &[Value], found: &mut Vec<String>) {
    let name = ["name", "type", "uid"]
        .into_iter()
        .find(|name| old.iter().chain(new).all(|item| item[*name].is_string()));
    let Some(name) = name else {
        for at in 0..old.len().max(new.len()) {
            compare(&format!("{path}[{at}]"), old.get(at), new.get(at), found);
        }
        return;
    };
    let same = |items: &'_ [Value], wanted: &Value| items.iter().position(|item| item[name] == wanted[name]);
    for item in old {
        let other = same(new, item).map(|at| &new[at]);
        compare(&format!("{path}[{}]", text(&item[name])), Some(item), other, found);
    }
    for item in new.iter().filter(|item| same(old, item).is_none()) {
        compare(&format!("{path}[{}]", text(&item[name])), None, Some(item), found);
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn told(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "(none)".to_owned(), Value::to_string);
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_came_changed_and_went_is_told_by_its_path() {
        let old = json!({"spec": {"replicas": 1, "paused": true}, "metadata": {"resourceVersion": "1"}});
        let new = json!({"spec": {"replicas": 4, "a": {}}, "metadata": {"resourceVersion": "2"}});
        assert_eq!(
            differences(&old, &new),
            ["spec.paused: true -> (none)", "spec.replicas: 1 -> 4", "spec.a: (none) -> {}"]
        );
        assert!(differences(&old, &old).is_empty());
    }

    #[test]
    fn items_are_told_apart_by_what_names_them() {
        let old =
            json!({"conditions": [{"type": "Ready", "status": "False"}, {"type": "Old", "status": "True"}]});
        let new = json!({"conditions": [{"type": "New"}, {"type": "Ready", "status": "True"}]});
        assert_eq!(
            differences(&old, &new),
            [
                r#"conditions[Ready].status: "False" -> "True""#,
                r#"conditions[Old]: {"status":"True","type":"Old"} -> (none)"#,
                r#"conditions[New]: (none) -> {"type":"New"}"#,
            ]
        );
        assert_eq!(differences(&json!([1, 2]), &json!([1])), ["[1]: 2 -> (none)"]);
    }

    #[test]
    fn what_is_long_is_cut() {
        let (old, new) = (json!({"a": "x".repeat(1000)}), json!({"a": "é".repeat(1000)}));
        assert!(differences(&old, &new)[0].len() < 250);
        let many: Value =
            (0..40).map(|number| (number.to_string(), json!(1))).collect::<serde_json::Map<_, _>>().into();
        let told = differences(&json!({}), &many);
        assert_eq!((told.len(), told[MOST].as_str()), (MOST + 1, "and 24 more"));
    }
}
