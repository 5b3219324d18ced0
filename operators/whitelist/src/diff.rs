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
}
