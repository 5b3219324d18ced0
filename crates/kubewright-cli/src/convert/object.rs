//! From one object to the one that says the same today.

use std::fmt;

use anyhow::{anyhow, bail};
use serde_json::{Map, Value};

use super::{definition, third_party, workload};

/// An object of today, and what became of the one before it.
#[derive(Debug)]
pub(super) struct Converted {
    /// Which object it is, for people.
    pub(super) what: String,
    pub(super) object: Value,
    pub(super) notes: Vec<Note>,
}

/// Something that somebody should know who uses the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// What was done.
    Done(String),
    /// What could not be carried over.
    Lost(String),
}

impl Note {
    pub(super) fn is_loss(&self) -> bool {
        matches!(self, Self::Lost(_))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(what) => f.write_str(what),
            Self::Lost(what) => write!(f, "not carried over: {what}"),
        }
    }
}

/// What one kind of object is made into.
pub(super) type Members = Map<String, Value>;

/// The object that says today what this one says.
///
/// # Errors
/// When it is no object with a kind, or one of a version that is neither served today nor known here.
pub(super) fn convert(object: Value) -> anyhow::Result<Converted> {
    let Value::Object(mut members) = object else { bail!("a document is no object: {}", shown(&object)) };
    let text = |name: &str| match members.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(other) => Err(anyhow!("{name} is no text: {}", shown(other))),
        None => Err(anyhow!("an object has no {name}")),
    };
    let (version, kind) = (text("apiVersion")?, text("kind")?);
    let name =
        members.get("metadata").and_then(|metadata| metadata["name"].as_str()).unwrap_or("without a name");
    let what = format!("{kind} {name}");
    let mut notes = Vec::new();
    let converted = match (version.as_str(), kind.as_str()) {
        ("extensions/v1beta1", "ThirdPartyResource") => third_party::convert(&members, &mut notes),
        ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition") => {
            definition::convert(&mut members, &mut notes)
        }
        (version, kind) => workload::convert(version, kind, &mut members, &mut notes),
    };
    let object = converted.map_err(|error| anyhow!("{what}: {error}"))?;
    let object = object.map_or(Value::Object(members), Value::Object);
    Ok(Converted { what, object, notes })
}

/// A value, cut to what fits a line.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
