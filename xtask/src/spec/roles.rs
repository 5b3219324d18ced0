//! The RBAC objects that a new cluster has: `roles.txt`.

use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// A line of JSON for each object, without what each cluster has its own of, after its resource and name.
///
/// # Errors
/// When an answer is no list.
pub(super) fn write(lists: &[(&str, Value)]) -> Result<String> {
    let mut text = String::from("#\n# resource name-or-namespace/name object\n");
    for (resource, list) in lists {
        let mut objects: Vec<(String, Value)> = Vec::new();
        for one in list["items"].as_array().with_context(|| format!("no list of {resource}"))? {
            let (place, name) =
                (one["metadata"]["namespace"].as_str(), one["metadata"]["name"].as_str().unwrap_or_default());
            let name = place.map_or_else(|| name.to_owned(), |place| format!("{place}/{name}"));
            let mut made = json!({});
            for key in ["aggregationRule", "roleRef", "rules", "subjects"] {
                if !one[key].is_null() {
                    made[key] = one[key].clone();
                }
            }
            for key in ["annotations", "labels"] {
                if !one["metadata"][key].is_null() {
                    made[key] = one["metadata"][key].clone();
                }
            }
            objects.push((name, made));
        }
        objects.sort_by(|one, other| one.0.cmp(&other.0));
        for (name, object) in objects {
            writeln!(text, "{resource} {name} {object}").expect("a String takes it");
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cluster_has_of_its_own_is_left_out() {
        let role = json!({"metadata": {"name": "view", "uid": "1", "labels": {"a": "b"}}, "rules": []});
        let text = write(&[("clusterroles", json!({"items": [role]}))]).unwrap();
        assert!(text.ends_with("clusterroles view {\"labels\":{\"a\":\"b\"},\"rules\":[]}\n"), "{text}");
    }
}
