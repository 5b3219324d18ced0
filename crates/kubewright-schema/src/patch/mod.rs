//! Patches: RFC 6902 JSON patches ([`json`]), RFC 7386 merge patches ([`merge`]) and strategic merge patches
//! ([`strategic`]), as Kubernetes applies them (`k8s.io/apiserver/pkg/endpoints/handlers/patch.go`). Pure functions on
//! JSON values. The configurations of server-side apply are decoded here too; [`crate::fields`] applies them.

mod configuration;
mod document;
mod explain;
pub mod json;
mod lists;
pub mod merge;
mod pointer;
pub mod strategic;
mod written;

use std::sync::Arc;

use http::StatusCode;
use kubewright_codec::json::type_name;
use kubewright_meta::ApiError;
use serde_json::{Map, Value};

use crate::fields::printed;
use crate::{Maker, Schema};

pub use configuration::Configuration;
pub use explain::explain;
pub use json::JsonPatch;

/// The content type of a JSON patch.
pub const JSON: &str = "application/json-patch+json";
/// The content type of a merge patch.
pub const MERGE: &str = "application/merge-patch+json";
/// The content type of a strategic merge patch.
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// The content type of server-side apply.
pub const APPLY: &str = "application/apply-patch+yaml";

/// The decoded body of a patch request.
#[derive(Clone, Debug)]
pub enum Patch {
    /// A change of whatever the object is.
    Change(Change),
    /// A configuration to be applied: what its manager wants the object to have.
    Apply(Configuration),
}

/// A decoded patch: it can be applied again and again, each time to a newer object.
#[derive(Clone, Debug)]
pub struct Change {
    kind: ChangeKind,
    /// What strict decoding has against the patch itself: members that stand twice, or that no operation has.
    pub complaints: Vec<String>,
}

#[derive(Clone, Debug)]
enum ChangeKind {
    /// Operations, one after the other.
    Json(JsonPatch),
    /// An object whose members replace the target's; null removes.
    Merge(Map<String, Value>),
    /// As before, with lists that are merged as the schema says.
    Strategic { patch: Map<String, Value>, schema: Arc<Schema> },
}

impl Patch {
    /// Decodes a patch of that content type (parameters such as `charset` are ignored). `schema` is that of a
    /// built-in kind: strategic merge patches need one; custom kinds have none to give.
    ///
    /// # Errors
    /// 415 for a content type that the kind does not take, 400 for a body that is not such a patch, 413 for a JSON patch
    /// of too many operations.
    pub fn parse(content_type: &str, body: &[u8], schema: Option<&Arc<Schema>>) -> Result<Self, ApiError> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let change = |(kind, complaints)| Self::Change(Change { kind, complaints });
        match (media_type, schema) {
            (JSON, _) => {
                let complaints = json::complaints(body);
                JsonPatch::parse(body).map(|patch| change((ChangeKind::Json(patch), complaints)))
            }
            (MERGE, _) if body.trim_ascii() == b"null" => Err(ApiError::bad_request("Invalid JSON Patch")),
            (MERGE, _) => {
                let (patch, complaints) = members(body).map_err(|why| undecodable(&why))?;
                Ok(change((ChangeKind::Merge(patch), complaints)))
            }
            (STRATEGIC, Some(schema)) => {
                let (patch, complaints) = members(body).map_err(ApiError::bad_request)?;
                Ok(change((ChangeKind::Strategic { patch, schema: Arc::clone(schema) }, complaints)))
            }
            (APPLY, _) => Configuration::parse(body).map(Self::Apply),
            (_, Some(_)) => Err(ApiError::unsupported_media_type(&[JSON, MERGE, STRATEGIC, APPLY])),
            (_, None) => Err(ApiError::unsupported_media_type(&[JSON, MERGE, APPLY])),
        }
    }
}

impl Change {
    /// The object that comes out of applying the patch to `current`. It may be of any shape: the caller decodes it as
    /// it would decode the body of an update.
    ///
    /// # Errors
    /// 422 for a JSON patch with an operation that fails; nothing is said of which one, as in Kubernetes. 400 and 500 for
    /// a strategic merge patch with directives that make no sense.
    pub fn apply(&self, current: &Value) -> Result<Value, ApiError> {
        match &self.kind {
            ChangeKind::Json(patch) => patch.apply(current).map_err(|_| rejected()),
            ChangeKind::Merge(patch) => {
                let mut merged = current.clone();
                merge::apply(&mut merged, patch);
                Ok(merged)
            }
            ChangeKind::Strategic { patch, schema } => {
                let mut merged = current.as_object().cloned().unwrap_or_default();
                strategic::apply(&mut merged, patch, schema.root().target()).map_err(unmergeable)?;
                Ok(Value::Object(merged))
            }
        }
    }

    /// Who makes the object that comes out: a strategic merge patch makes it of a map, of the others it is decoded.
    #[must_use]
    pub fn maker(&self) -> Maker {
        if matches!(self.kind, ChangeKind::Strategic { .. }) { Maker::Merge } else { Maker::Client }
    }

    /// The patch as Go prints it once it was applied to `current`, where messages quote it instead of the object: strategic
    /// merge patches.
    #[must_use]
    pub fn quoted(&self, current: &Value) -> Option<String> {
        match &self.kind {
            ChangeKind::Strategic { patch, schema } => {
                Some(printed::plain(&strategic::left(patch, current, Some(schema.root().target()))))
            }
            ChangeKind::Json(_) | ChangeKind::Merge(_) => None,
        }
    }
}

/// The answer to a strategic merge patch that cannot be applied (`interpretStrategicMergePatchError`).
fn unmergeable(failure: strategic::Failure) -> ApiError {
    match failure {
        strategic::Failure::Format(_) => ApiError::bad_request(failure.to_string()),
        strategic::Failure::ListOfLists => rejected(),
        strategic::Failure::Impossible(why) => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why),
    }
}

/// The answer to a JSON patch that cannot be applied.
fn rejected() -> ApiError {
    ApiError::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "Invalid",
        "the server rejected our request due to an error in our request",
    )
    .with_details(Value::Object(Map::new()))
}

/// The members of a patch that must be an object (null is an empty one), and what stands twice in it.
fn members(body: &[u8]) -> Result<(Map<String, Value>, Vec<String>), String> {
    let (value, complaints) = decode(body)?;
    match value {
        Value::Object(members) => Ok((members, complaints)),
        Value::Null => Ok((Map::new(), complaints)),
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            type_name(&other)
        )),
    }
}

/// JSON, and what stands twice in it.
fn decode(body: &[u8]) -> Result<(Value, Vec<String>), String> {
    let decoded = kubewright_codec::json::decode(body)?;
    let complaints = decoded.repeated.iter().map(|path| format!("duplicate field {path:?}"));
    Ok((decoded.value, complaints.collect()))
}

fn undecodable(why: &str) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(content_type: &str, body: &Value, schema: Option<&Arc<Schema>>) -> Change {
        match Patch::parse(content_type, body.to_string().as_bytes(), schema) {
            Ok(Patch::Change(change)) => change,
            other => panic!("not a change: {other:?}"),
        }
    }

    fn refused(content_type: &str, body: &[u8]) -> (u16, String) {
        let error = Patch::parse(content_type, body, None).expect_err("must be refused");
        (error.code.as_u16(), error.message)
    }

    #[test]
    fn the_content_type_decides_and_its_parameters_do_not() {
        let merge = Patch::parse("application/merge-patch+json; charset=utf-8", b"{}", None);
        assert!(matches!(merge, Ok(Patch::Change(Change { kind: ChangeKind::Merge(_), .. }))));
        assert!(matches!(
            Patch::parse(JSON, b"[]", None),
            Ok(Patch::Change(Change { kind: ChangeKind::Json(_), .. }))
        ));
        assert_eq!(refused("application/json", b"{}").0, 415);
        assert_eq!(refused("", b"{}").0, 415);
    }

    #[test]
    fn strategic_patches_need_the_schema_of_a_built_in_kind() {
        let schema = Arc::new(Schema::custom(&json!({})));
        assert!(matches!(
            Patch::parse(STRATEGIC, b"{}", Some(&schema)),
            Ok(Patch::Change(Change { kind: ChangeKind::Strategic { .. }, .. }))
        ));
        let (code, message) = refused(STRATEGIC, b"{}");
        assert_eq!(code, 415);
        assert!(message.ends_with("application/merge-patch+json, application/apply-patch+yaml"), "{message}");
    }

    #[test]
    fn a_merge_patch_that_is_no_object_is_undecodable() {
        let text = "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}";
        assert_eq!(refused(MERGE, b"3"), (400, text.to_owned()));
        assert_eq!(refused(MERGE, b"null"), (400, "Invalid JSON Patch".to_owned()));
        assert_eq!(
            refused(MERGE, b"{"),
            (400, "error decoding patch: unexpected end of JSON input".to_owned())
        );
    }

    #[test]
    fn setting_an_image_keeps_the_other_containers() {
        let schema = &Arc::new(Schema::built_in("io.k8s.api.apps.v1.Deployment"));
        let containers =
            |containers: Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
        let order = json!([{"name": "a"}, {"name": "b"}]);
        let mut change = containers(json!([{"name": "b", "image": "new"}]));
        change["spec"]["template"]["spec"]["$setElementOrder/containers"] = order;
        let patch = parsed(STRATEGIC, &change, Some(schema));
        let before =
            containers(json!([{"name": "a", "image": "old"}, {"name": "b", "image": "old", "args": ["x"]}]));
        let after =
            containers(json!([{"name": "a", "image": "old"}, {"name": "b", "image": "new", "args": ["x"]}]));
        assert_eq!(patch.apply(&before), Ok(after));
        let broken = json!({"metadata": {"ownerReferences": [{"name": "x"}]}});
        let patch = parsed(STRATEGIC, &broken, Some(schema));
        let error =
            patch.apply(&json!({"metadata": {"ownerReferences": [{"uid": "u"}]}})).expect_err("no key");
        assert_eq!((error.code.as_u16(), &*error.reason), (500, ""));
        assert_eq!(error.message, "map: map[name:x] does not contain declared merge key: uid");
    }

    #[test]
    fn a_failing_operation_is_refused_without_saying_which() {
        let patch = parsed(JSON, &json!([{"op": "remove", "path": "/a"}]), None);
        let error = patch.apply(&json!({})).expect_err("nothing to remove");
        assert_eq!(error.code.as_u16(), 422);
        assert_eq!(error.reason, "Invalid");
        assert_eq!(error.details, Some(json!({})));
    }
}
