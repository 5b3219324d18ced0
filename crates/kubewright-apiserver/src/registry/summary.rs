//! What the server knows of a stored object without decoding it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::object;
use crate::kinds::Kind;
use crate::selector;

/// The tag of a stored object: what selectors ask for.
#[derive(Debug, Default)]
pub struct Summary {
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// The fields that field selectors of its kind may name, `metadata.name` and `metadata.namespace` included.
    pub fields: Vec<(String, String)>,
}

impl Summary {
    /// The summary of an object, which is in the storage version of `kind`.
    #[must_use]
    pub fn of(kind: &Kind, value: &Value) -> Self {
        let fields = selector::supported_fields(kind)
            .into_iter()
            .map(|field| {
                let seen = selector::field_value(kind, value, &field);
                (field, seen)
            })
            .collect();
        Self { labels: object::labels(value), fields }
    }

    /// The value of a field that selectors may name; empty when the object has none.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<String> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone())
    }
}
