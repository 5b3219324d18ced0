//! What is not shown of Secrets, unless somebody wants to see it.

use serde_json::Value;

/// Whether the values of Secrets are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrets {
    /// In the place of each value is how long it is.
    Hidden,
    /// As they are.
    Shown,
}

/// What kubectl keeps of what was last applied, with all values in it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Secrets {
    /// An object as it may be shown.
    pub(crate) fn shown(self, collection: &str, mut object: Value) -> Value {
        if self == Self::Shown || collection != "/secrets" {
            return object;
        }
        for field in ["data", "stringData"] {
            let values = object.get_mut(field).and_then(Value::as_object_mut);
            for value in values.into_iter().flat_map(serde_json::Map::values_mut) {
                *value = hidden(value).into();
            }
        }
        if let Some(applied) = object
            .pointer_mut("/metadata/annotations")
            .and_then(|annotations| annotations.get_mut(LAST_APPLIED))
        {
            *applied = hidden(applied).into();
        }
        object
    }
}

fn hidden(value: &Value) -> String {
    format!("(hidden, {} characters)", value.as_str().unwrap_or_default().len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_secrets_are_hidden_wherever_they_stand() {
        let secret = json!({"data": {"password": "aHVudGVyMg=="}, "stringData": {"x": "hunter2"},
            "metadata": {"annotations": {LAST_APPLIED: "{\"stringData\":{\"x\":\"hunter2\"}}", "a": "b"}}});
        let shown = Secrets::Hidden.shown("/secrets", secret.clone());
        assert_eq!(shown["data"]["password"], "(hidden, 12 characters)");
        assert_eq!(shown["metadata"]["annotations"]["a"], "b");
        assert!(!shown.to_string().contains("hunter2"), "{shown}");
        assert_eq!(Secrets::Shown.shown("/secrets", secret.clone()), secret);
        assert_eq!(Secrets::Hidden.shown("/configmaps", secret.clone()), secret);
    }
}
