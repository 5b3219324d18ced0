//! What a conversion must not lose: metadata, and what a version cannot express.

use kubewright_meta::carry::carry;
use serde_json::{Map, Value};

use super::{Spoke, read, write};
use crate::Object;

/// How much of an object an annotation may keep; all annotations of an object have 256 KiB
/// (`k8s.io/apimachinery/pkg/api/validation`, `TotalAnnotationSizeLimitB`).
const MOST_KEPT: usize = 192 * 1024;

/// What identifies an object, and what no conversion may change.
const IDENTITY: [&str; 3] = ["name", "namespace", "uid"];

/// The members of an object that are no content.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// `original` with the labels and annotations that a conversion has given an object (`found`).
///
/// # Errors
/// When the conversion has changed what identifies the object.
pub(super) fn metadata(original: Value, found: &Value) -> Result<Value, String> {
    // The conversion has not looked at metadata.
    if found.as_object().is_none_or(Map::is_empty) {
        return Ok(original);
    }
    let mut metadata = original;
    for field in IDENTITY {
        let part = |metadata: &Value| metadata.get(field).cloned().unwrap_or_default();
        let (before, after) = (part(&metadata), part(found));
        if before != after {
            return Err(format!("its conversion changes metadata.{field} from {before} to {after}"));
        }
    }
    if let Some(metadata) = metadata.as_object_mut() {
        for field in ["labels", "annotations"] {
            match found[field].as_object().is_none_or(Map::is_empty) {
                true => metadata.remove(field),
                false => metadata.insert(field.to_owned(), found[field].clone()),
            };
        }
    }
    Ok(metadata)
}

/// Takes what `annotation` keeps away from the metadata of an object. What nobody can read is taken away as well: the spoke
/// counts alone then.
pub(super) fn take(metadata: &mut Value, annotation: &str) -> Option<Value> {
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(annotation)?;
    if annotations.is_empty() {
        metadata.as_object_mut()?.remove("annotations");
    }
    serde_json::from_str::<Value>(text.as_str()?).ok().filter(Value::is_object)
}

/// What has to be kept of `hub`, if its form `spoke` lacks something.
pub(super) fn lost<H: Object>(
    spoke: &Value,
    hub: &Value,
    functions: &Spoke<H>,
) -> Result<Option<String>, String> {
    let back = content(&write(&(functions.to_hub)(spoke)?)?);
    let held = content(&write(&read::<H>(hub)?)?);
    if back == held {
        return Ok(None);
    }
    let kept = held.to_string();
    match kept.len() > MOST_KEPT {
        true => Err(format!(
            "an annotation would have to keep {} bytes, and {MOST_KEPT} are possible",
            kept.len()
        )),
        false => Ok(Some(kept)),
    }
}

/// The hub of a spoke that became `now`, with what was kept of it before somebody changed the spoke.
pub(super) fn restored<H: Object>(now: Value, kept: &Value, functions: &Spoke<H>) -> Result<Value, String> {
    let then = read::<H>(&enveloped(&now, kept)).and_then(|hub| (functions.from_hub)(hub));
    // Of another time, or somebody else's.
    let Ok(then) = then else { return Ok(now) };
    let then = write(&(functions.to_hub)(&then)?)?;
    Ok(enveloped(&now, &carry(kept, &content(&then), &content(&now))))
}

/// The content of an object: all but what it is called.
fn content(object: &Value) -> Value {
    let mut content = object.clone();
    if let Some(members) = content.as_object_mut() {
        members.retain(|member, value| !ENVELOPE.contains(&&**member) && !value.is_null());
    }
    content
}

/// Whether an object is nothing but a name.
pub(super) fn is_bare(object: &Value) -> bool {
    object.as_object().is_some_and(|members| {
        members.iter().all(|(member, value)| ENVELOPE.contains(&&**member) || value.is_null())
    })
}

/// An object that is called as `like`, with this content.
fn enveloped(like: &Value, content: &Value) -> Value {
    let mut object = content.clone();
    for member in ENVELOPE {
        object[member] = like[member].clone();
    }
    object
}
