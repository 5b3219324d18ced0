//! Whether a write did what it was to do: the author has not seen what else the server made of it.

use kubewright_meta::subset;
use serde_json::Value;

/// What a write is to make of an object.
#[derive(Clone, Copy)]
pub(crate) enum Intent<'a> {
    /// An object that has the fields of this one, which is the text of the request.
    Text(&'a [u8]),
    /// An object that has these fields, and not those that are null (a merge patch or an apply).
    Fields(&'a Value),
    /// What is not looked into: the answer is not as it was asked for.
    Opaque,
}

impl Intent<'_> {
    /// Whether the object that the server answered with has all that was asked for; what the server added does not count.
    pub(crate) fn is_met_by(&self, answer: &str) -> bool {
        match self {
            Self::Text(text) => serde_json::from_slice(text).is_ok_and(|asked| subset::is_in(&asked, answer)),
            Self::Fields(asked) => subset::is_in(asked, answer),
            Self::Opaque => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_met(asked: &Value, answer: &Value) -> bool {
        let answer = answer.to_string();
        let is_met = Intent::Fields(asked).is_met_by(&answer);
        assert_eq!(Intent::Text(asked.to_string().as_bytes()).is_met_by(&answer), is_met);
        is_met
    }

    #[test]
    fn what_the_server_adds_does_not_count() {
        let stored = json!({
            "metadata": {"name": "a", "uid": "1", "resourceVersion": "7", "labels": {"x": "y"}, "managedFields": [{}]},
            "data": {"a": "1", "b": "2"},
        });
        assert!(is_met(&json!({"data": {"a": "1"}}), &stored));
        assert!(is_met(&json!({"metadata": {"resourceVersion": "6"}, "data": {"a": "1"}}), &stored));
        assert!(is_met(&json!({"data": {"c": null}, "binaryData": {}}), &stored));
        assert!(is_met(&json!({"metadata": {"name": "a", "uid": null}, "data": {"b": "2"}}), &stored));
    }

    #[test]
    fn what_the_server_made_of_it_counts() {
        let stored = json!({"metadata": {"name": "a"}, "data": {"a": "1"}});
        assert!(!is_met(&json!({"data": {"a": "2"}}), &stored));
        assert!(!is_met(&json!({"data": {"b": "2"}}), &stored));
        assert!(!is_met(&json!({"data": {"a": null}}), &stored));
        assert!(!is_met(&json!({"status": {"dropped": true}}), &stored));
        assert!(!is_met(&json!({"metadata": {"name": "a", "labels": {"x": "y"}}}), &stored));
        assert!(!Intent::Opaque.is_met_by(&stored.to_string()));
        assert!(!is_met(&json!({}), &json!("no object")));
    }
}
