//! The annotation in which `kubectl apply` keeps what it applied on the client's side, and the way from there to
//! server-side apply (`k8s.io/apimachinery/pkg/util/managedfields/internal/lastapplied*.go`).

use kubewright_meta::object;
use serde_json::Value;

use super::check::check;
use super::compare::Difference;
use super::content::fields;
use super::set::Set;
use super::shape::Shape;
use super::versions::Version;

/// The manager for which it is looked after.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The most bytes of all annotations of an object.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

fn annotation(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// The fields that the annotation of an object says and that still are as it says: who applies on the server what was
/// applied on the client may take them.
#[must_use]
pub(super) fn allowed(kind: &dyn Version, live: &Value) -> Option<Set> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    if last.get("apiVersion")?.as_str()? != kind.api_version() {
        return None;
    }
    let shape = Shape::of(kind);
    if check(shape, &last).is_some() || check(shape, live).is_some() {
        return None;
    }
    let difference = Difference::between(shape, &last, live).ok()?;
    Some(fields(shape, &last).difference(&difference.changed).difference(&difference.removed))
}

/// Sets the annotation of an object that has one to a configuration; removes it when that is too large.
pub(super) fn renew(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let annotations = object::meta_mut(object).get_mut("annotations").and_then(Value::as_object_mut);
    let Some(annotations) = annotations else { return };
    annotations.insert(ANNOTATION.to_owned(), (escaped(&config) + "\n").into());
    let size: usize =
        annotations.iter().map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len()).sum();
    if size > ANNOTATIONS_LIMIT {
        annotations.remove(ANNOTATION);
    }
}

/// JSON as Go writes it: what could be taken for HTML is escaped.
fn escaped(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for one in text.chars() {
        match one {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => escaped += &format!("\\u{:04x}", u32::from(one)),
            one => escaped.push(one),
        }
    }
    escaped
}
