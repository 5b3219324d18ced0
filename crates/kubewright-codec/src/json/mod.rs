//! JSON bodies, decoded as Go decodes them: the same words for what is wrong, and members that stand in their object
//! twice are noticed, as strict field validation has to (`sigs.k8s.io/json`).

mod decoder;
mod mistake;

use std::collections::BTreeSet;

use serde_json::Value;

use decoder::{Decoder, Visited};

/// How deep a body may be nested: what is stored has to be read again, and `serde_json` reads no more.
pub const LEVELS: usize = 127;

/// The most members that are told; a body with more of them is told these (`strictErrors` of `sigs.k8s.io/json`).
const TOLD: usize = 100;

/// A decoded JSON text.
#[derive(Debug)]
pub struct Parsed {
    /// The value, whatever its JSON type.
    pub value: Value,
    /// The paths of the members that stand in their object twice (the last one counts), in the text's order.
    pub repeated: Vec<String>,
    /// What these were before, in the text's order.
    pub earlier: Vec<Earlier>,
}

/// The value of a member that stands in its object once more.
#[derive(Debug)]
pub struct Earlier {
    /// Where it stands, as a JSON pointer.
    pub pointer: String,
    /// What it was.
    pub value: Value,
}

/// Decodes one JSON value. Bytes that are no UTF-8, and halves of surrogate pairs, become U+FFFD.
///
/// # Errors
/// What is wrong, in the words of Go's `encoding/json`.
pub fn decode(bytes: &[u8]) -> Result<Parsed, String> {
    let mut repeated = Vec::new();
    let (value, earlier) = Decoder::new(bytes, |visited| {
        if visited.again && repeated.len() < TOLD {
            let path = visited.path();
            if !repeated.contains(&path) {
                repeated.push(path);
            }
        }
    })
    .document()?;
    Ok(Parsed { value, repeated, earlier })
}

/// What strict validation complains of in a text that decodes: members that are `unknown` (paths) or stand there twice,
/// in the order of the text. What is inside of an unknown member is not looked at.
pub fn complaints(bytes: &[u8], unknown: &[String]) -> Vec<String> {
    let unknown: BTreeSet<&str> = unknown.iter().map(String::as_str).collect();
    let mut told = Vec::new();
    let mut inside: Option<String> = None;
    let decoded = Decoder::new(bytes, |visited: Visited<'_>| {
        let path = visited.path();
        if inside.as_deref().is_some_and(|outer| is_inside(&path, outer)) {
            return;
        }
        let complaint = if unknown.contains(path.as_str()) {
            inside = Some(path.clone());
            format!("unknown field {path:?}")
        } else if visited.again {
            format!("duplicate field {path:?}")
        } else {
            return;
        };
        if told.len() < TOLD && !told.contains(&complaint) {
            told.push(complaint);
        }
    })
    .document();
    debug_assert!(decoded.is_ok(), "it was decoded before");
    told
}

fn is_inside(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.starts_with(['.', '[']))
}

/// The type of a value in the words of Go's decoder.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a scalar is Go's zero value.
#[must_use]
pub fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(yes) => !yes,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests;
