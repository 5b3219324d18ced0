//! What the server knows of a stored object without decoding it.

use std::sync::Arc;

use kubewright_store::Entry;
use serde_json::Value;

use super::encode;
use crate::kinds::Kind;
use crate::selector::{FieldSelector, NAME, NAMESPACE, Selectable};

/// Ends a key or value; it is in none of them.
const END: char = '\0';

/// The tag of a stored object: what selectors ask for. There is one for each object, so it is kept small.
#[derive(Debug)]
pub struct Summary {
    /// `metadata.labels`: keys and values in turn, each with [`END`] after it, in one piece of memory because a label
    /// selector looks at every object of a collection.
    labels: Box<str>,
    /// What `values` are called.
    selectable: Arc<Selectable>,
    /// The fields that field selectors of its kind may name, beyond its name and namespace.
    values: Box<[Box<str>]>,
}

impl Summary {
    /// The summary of an object, which is in the storage version of `kind`.
    #[must_use]
    pub fn of(kind: &Kind, object: &Value) -> Self {
        Self {
            labels: labels(object),
            values: kind.selectable().values(object),
            selectable: Arc::clone(kind.selectable()),
        }
    }

    /// The summary of an object of which no version is served.
    pub(super) fn unserved(object: &Value) -> Self {
        Self { labels: labels(object), selectable: Arc::default(), values: Box::default() }
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        let mut rest = &*self.labels;
        while let Some((one, after)) = rest.split_once(END) {
            let (value, after) = after.split_once(END)?;
            if one == key {
                return Some(value);
            }
            rest = after;
        }
        None
    }

    /// The value of a field that selectors may name, other than name and namespace; empty when the object has none.
    #[must_use]
    pub fn field(&self, name: &str) -> &str {
        let mut named = self.selectable.names().iter().zip(&self.values);
        named.find(|(field, _)| *field == name).map_or("", |(_, value)| value)
    }
}

fn labels(object: &Value) -> Box<str> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let texts = labels.filter_map(|(key, value)| Some([key.as_str(), value.as_str()?])).flatten();
    texts.flat_map(|text| [text, "\0"]).collect()
}

/// Whether a selector names a stored object of `kind`.
pub(super) fn is_selected(fields: &FieldSelector, kind: &Kind, entry: &Entry<Summary>) -> bool {
    if fields.is_everything() {
        return true;
    }
    let (namespace, name) = entry.key.split_once('/').unwrap_or(("", &entry.key));
    let matches = |summary: &Summary| {
        fields.matches(|field| match field {
            NAME => name,
            NAMESPACE => namespace,
            field => summary.field(field),
        })
    };
    if entry.tag.selectable.names() == kind.selectable().names() {
        matches(&entry.tag)
    } else {
        // It was written when its definition had other selectable fields.
        matches(&Summary::of(kind, &encode::value(kind, entry)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Kinds;

    #[test]
    fn a_summary_tells_labels_and_fields() {
        let kinds = Kinds::built_in();
        let pods = kinds.get("", "v1", "pods").expect("a built-in kind");
        let labels = json!({"app": "web", "empty": "", "web": "app"});
        let pod = json!({"metadata": {"name": "a", "labels": labels}, "spec": {"nodeName": "n"}});
        let summary = Summary::of(pods, &pod);
        let seen = ["app", "empty", "web", "none", ""].map(|key| summary.label(key));
        assert_eq!(seen, [Some("web"), Some(""), Some("app"), None, None]);
        assert_eq!((summary.field("spec.nodeName"), summary.field("status.phase")), ("n", ""));
    }
}
