//! What the server knows of a stored object without decoding it.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kubewright_store::{Entry, Revision};
use serde_json::Value;

use super::encode;
use crate::definition::Versions;
use crate::selector::{FieldSelector, NAME, NAMESPACE, Selectable};
use crate::{Custom, Kind};

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
    /// The fields that field selectors of its kind may name, beyond its name and namespace; as the object is read.
    values: Box<[Box<str>]>,
    bytes: Form,
    /// Its message, from when it was first asked for.
    message: OnceLock<Box<Message>>,
}

/// The protobuf of an object.
#[derive(Debug)]
struct Message {
    /// The revision of the object whose it is: that of a deleted object has the same summary as the one before.
    of: Revision,
    bytes: Bytes,
}

/// What the bytes beside a summary are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Stored, and what was then to be read of them.
    Whole,
    /// Stored without some of the defaults that are there when they are read.
    Lacking,
    /// Made for who asked, in the version that was asked for.
    View,
}

impl Summary {
    /// The summary of an object that is about to be stored, in the storage version of `kind`.
    #[must_use]
    pub fn of(kind: &Kind, object: &Value) -> Self {
        let Some(custom) = &kind.custom else {
            return Self::new(object, Arc::clone(kind.selectable()), Form::Whole);
        };
        match custom.versions.as_read(object) {
            Cow::Borrowed(same) => Self::new(same, custom.versions.selectable(), Form::Whole),
            Cow::Owned(read) => Self::new(&read, custom.versions.selectable(), Form::Lacking),
        }
    }

    /// The same of an object that is read with more than is stored of it.
    pub(super) fn lacking(kind: &Kind, object: &Value) -> Self {
        Self { bytes: Form::Lacking, ..Self::of(kind, object) }
    }

    /// Whether what is stored lacks some of what is read.
    pub(super) fn is_lacking(&self) -> bool {
        self.bytes == Form::Lacking
    }

    /// The summary of an object as it is shown in the version of `kind`.
    pub fn of_view(kind: &Kind, object: &Value) -> Self {
        Self::new(object, Arc::clone(kind.selectable()), Form::View)
    }

    /// The summary of an object of which no version is served.
    pub fn unserved(object: &Value) -> Self {
        Self::new(object, Arc::default(), Form::Whole)
    }

    fn new(object: &Value, selectable: Arc<Selectable>, bytes: Form) -> Self {
        let message = OnceLock::new();
        Self { labels: labels(object), values: selectable.values(object), selectable, bytes, message }
    }

    /// The message of the entry that this is the summary of, kept from the first time on; `make` makes it, where there is one.
    pub(super) fn message(&self, of: Revision, make: impl Fn() -> Option<Bytes>) -> Option<Bytes> {
        if let Some(kept) = self.message.get() {
            return if kept.of == of { Some(kept.bytes.clone()) } else { make() };
        }
        let bytes = make()?;
        let _ = self.message.set(Box::new(Message { of, bytes: bytes.clone() }));
        Some(bytes)
    }

    /// Whether the bytes beside it were made for who asked, so that nothing is left to do with them.
    pub(super) fn is_view(&self) -> bool {
        self.bytes == Form::View
    }

    /// Whether the bytes beside it, which are stored in a version, are what the schema of today reads of them.
    pub(super) fn is_as_read(&self, versions: &Versions, stored: &str) -> bool {
        self.bytes == Form::Whole && versions.is_current(stored, &self.selectable)
    }

    /// The value of a label.
    #[inline]
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
    #[inline]
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

/// Whether a selector names an object of `kind`, which is a view of one where [`encode::is_to_be_converted`] holds of it.
pub fn is_selected(fields: &FieldSelector, kind: &Kind, entry: &Entry<Summary>) -> bool {
    if fields.is_everything() {
        return true;
    }
    let (namespace, name) = place(entry);
    if !fields.may_match(namespace, name) {
        return false;
    }
    let matches = |summary: &Summary| {
        fields.matches(|field| match field {
            NAME => name,
            NAMESPACE => namespace,
            field => summary.field(field),
        })
    };
    if fields.is_of_names() || tells(kind, entry) {
        matches(&entry.tag)
    } else {
        matches(&Summary::of_view(kind, &encode::value(kind, entry)))
    }
}

/// The namespace and name of an entry.
pub fn place(entry: &Entry<Summary>) -> (&str, &str) {
    entry.key.split_once('/').unwrap_or(("", &entry.key))
}

/// Whether the tag of an entry has the fields that the object has in the version of `kind`.
///
/// Where no webhook converts, versions that have a field have the same value in it: what both schemas know is not pruned, and
/// only the stored version's defaults are set. But a definition may since have got other fields, or other defaults.
fn tells(kind: &Kind, entry: &Entry<Summary>) -> bool {
    let same_fields = entry.tag.selectable.names() == kind.selectable().names();
    let current = |custom: &Custom| {
        let stored = encode::stored_version(&entry.bytes);
        custom.versions.is_current(stored, &entry.tag.selectable)
    };
    same_fields && (entry.tag.is_view() || kind.custom.as_ref().is_none_or(current))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Kinds;

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
