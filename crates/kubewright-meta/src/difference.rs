//! What differs between two JSON values, in words for people.

use serde_json::Value;

/// How differences are told, each as `path: old -> new`.
#[derive(Clone, Copy, Debug)]
pub struct Differences {
    /// So many are told one by one; of more, their number. 16.
    pub most: usize,
    /// The most characters of a value. 60.
    pub longest: usize,
    /// What stands for a value that is not there. `(none)`.
    pub nothing: &'static str,
    /// Whether items of lists are told apart by their `name`, `type` or `uid`, where all of them have one; else by their
    /// place.
    pub named_items: bool,
    /// Paths that are not looked at.
    pub ignored: &'static [&'static str],
}

impl Default for Differences {
    fn default() -> Self {
        Self { most: 16, longest: 60, nothing: "(none)", named_items: true, ignored: &[] }
    }
}

impl Differences {
    /// The differences from `old` to `new`, in the order of their paths, which begin with `path`. None when and only when the
    /// two are equal, but for what is ignored.
    #[must_use]
    pub fn between(&self, path: &str, old: &Value, new: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.compare(path, Some(old), Some(new), &mut found);
        if found.len() > self.most {
            let more = found.len() - self.most;
            found.truncate(self.most);
            found.push(format!("and {more} more"));
        }
        found
    }

    fn compare(&self, path: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<String>) {
        if old == new || self.ignored.contains(&path) {
            return;
        }
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                let added = new.keys().filter(|key| !old.contains_key(*key));
                let mut keys: Vec<&String> = old.keys().chain(added).collect();
                keys.sort();
                for key in keys {
                    let dot = if path.is_empty() { "" } else { "." };
                    self.compare(&format!("{path}{dot}{key}"), old.get(key), new.get(key), found);
                }
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) => self.items(path, old, new, found),
            _ => found.push(format!("{path}: {} -> {}", self.shown(old), self.shown(new))),
        }
    }

    fn items(&self, path: &str, old: &[Value], new: &[Value], found: &mut Vec<String>) {
        let all_have = |name: &&str| old.iter().chain(new).all(|item| item[*name].is_string());
        let name = ["name", "type", "uid"].into_iter().find(all_have).filter(|_| self.named_items);
        let Some(name) = name else {
            for at in 0..old.len().max(new.len()) {
                self.compare(&format!("{path}[{at}]"), old.get(at), new.get(at), found);
            }
            return;
        };
        let of = |item: &'_ Value| format!("{path}[{}]", item[name].as_str().unwrap_or_default());
        let same =
            |items: &'_ [Value], wanted: &Value| items.iter().position(|item| item[name] == wanted[name]);
        for item in old {
            let other = same(new, item).map(|at| &new[at]);
            self.compare(&of(item), Some(item), other, found);
        }
        for item in new.iter().filter(|item| same(old, item).is_none()) {
            self.compare(&of(item), None, Some(item), found);
        }
    }

    fn shown(&self, value: Option<&Value>) -> String {
        value.map_or_else(|| self.nothing.to_owned(), |value| shown(value, self.longest))
    }
}

/// A value as JSON, cut after so many characters.
#[must_use]
pub fn shown(value: &Value, longest: usize) -> String {
    let text = value.to_string();
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const PLACES: Differences =
        Differences { most: 5, longest: 60, nothing: "nothing", named_items: false, ignored: &[] };

    fn differences(old: &Value, new: &Value) -> Vec<String> {
        let ignored = &["metadata.managedFields", "metadata.resourceVersion"];
        Differences { ignored, ..Differences::default() }.between("", old, new)
    }

    #[test]
    fn what_came_changed_and_went_is_told_by_its_path() {
        let old = json!({"spec": {"replicas": 1, "paused": true}, "metadata": {"resourceVersion": "1"}});
        let new = json!({"spec": {"replicas": 4, "a": {}}, "metadata": {"resourceVersion": "2"}});
        assert_eq!(
            differences(&old, &new),
            ["spec.a: (none) -> {}", "spec.paused: true -> (none)", "spec.replicas: 1 -> 4"]
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
    fn items_are_told_by_their_place_where_names_do_not_count() {
        let found =
            json!({"replicas": 4, "containers": [{"image": "httpd", "name": "a"}, {"image": "extra"}]});
        let wanted = json!({"replicas": 1, "containers": [{"image": "nginx", "name": "a"}], "paused": false});
        assert_eq!(
            PLACES.between("spec", &found, &wanted),
            [
                r#"spec.containers[0].image: "httpd" -> "nginx""#,
                r#"spec.containers[1]: {"image":"extra"} -> nothing"#,
                "spec.paused: nothing -> false",
                "spec.replicas: 4 -> 1",
            ]
        );
    }

    #[test]
    fn many_differences_and_long_values_are_cut() {
        let (old, new) = (json!({"a": "x".repeat(1000)}), json!({"a": "é".repeat(1000)}));
        assert!(differences(&old, &new)[0].len() < 250);
        let many: Value = (0..40).map(|number| (number.to_string(), json!(1))).collect();
        let told = differences(&json!({}), &many);
        assert_eq!((told.len(), told[16].as_str()), (17, "and 24 more"));
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
            prop_assert_eq!(PLACES.between("spec", &a, &b).is_empty(), a == b);
        }
    }
}
