//! What a webhook answers: an AdmissionReview with a response, which has to be in order before it counts
//! (`k8s.io/apiserver/pkg/admission/plugin/webhook/{request,errors}`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use kubewright_codec::json::{self, type_name};
use kubewright_meta::ApiError;
use serde_json::{Map, Value, json};

use super::review::ReviewVersion;

/// What Kubernetes' decoder reads first of everything.
const TYPE_META: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// An answer that is in order.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    /// Why not, as a Status.
    pub(super) status: Option<Value>,
    /// A patch and its type.
    pub(super) patch: Option<(Vec<u8>, String)>,
    pub(super) warnings: Vec<String>,
}

/// An AdmissionReview as it came.
pub(super) struct Review {
    api_version: String,
    kind: String,
    response: Option<Response>,
}

struct Response {
    uid: String,
    allowed: bool,
    status: Option<Value>,
    patch: Vec<u8>,
    patch_type: Option<String>,
    warnings: Vec<String>,
}

/// Reads the body of an answer, JSON or YAML.
///
/// # Errors
/// Why it is no AdmissionReview of that version, in the words of Kubernetes' decoder.
pub(super) fn decode(version: ReviewVersion, bytes: &[u8]) -> Result<Review, String> {
    let no_type = |why: &str| format!("couldn't get version/kind; json parse error: {why}");
    let review = if bytes.trim_ascii_start().starts_with(b"{") {
        json::decode(bytes).map_err(|why| no_type(&why))?.value
    } else {
        let text = String::from_utf8_lossy(bytes);
        serde_saphyr::from_str(&text).map_err(|error| no_type(&error.to_string()))?
    };
    if !review.is_object() {
        return Err(no_type(&format!(
            "json: cannot unmarshal {} into Go value of type {TYPE_META}",
            type_name(&review)
        )));
    }
    let text = |field: &str| review[field].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    // A review that does not say what it is is taken for the one that was asked for, and found out later.
    if !api_version.is_empty() || !kind.is_empty() {
        check_type(version, &api_version, &kind)?;
    }
    let response = match &review["response"] {
        Value::Null => None,
        response => Some(Response::read(response)?),
    };
    Ok(Review { api_version, kind, response })
}

fn check_type(version: ReviewVersion, api_version: &str, kind: &str) -> Result<(), String> {
    let unknown = || {
        Err(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        ))
    };
    let (of, given) = match (api_version, kind) {
        ("admission.k8s.io/v1", "AdmissionReview") => ("AdmissionReview", "v1"),
        ("admission.k8s.io/v1beta1", "AdmissionReview") => ("AdmissionReview", "v1beta1"),
        ("v1", "Status") => ("Status", "v1"),
        _ => return unknown(),
    };
    let wanted = version.name();
    if of == "AdmissionReview" && given == wanted {
        return Ok(());
    }
    Err(format!("converting ({given}.{of}) to ({wanted}.AdmissionReview): unknown conversion"))
}

impl Response {
    fn read(response: &Value) -> Result<Self, String> {
        let Value::Object(members) = response else {
            return Err(mismatch(response, "response", "v1.AdmissionResponse"));
        };
        let patch = text(members, "patch")?.unwrap_or_default();
        let patch = STANDARD.decode(&patch).map_err(|_| {
            let wrong = |byte: u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
            let at = patch.bytes().position(wrong).unwrap_or(patch.len());
            format!("illegal base64 data at input byte {at}")
        })?;
        Ok(Self {
            uid: text(members, "uid")?.unwrap_or_default(),
            allowed: match members.get("allowed") {
                None | Some(Value::Null) => false,
                Some(Value::Bool(allowed)) => *allowed,
                Some(other) => return Err(mismatch(other, "response.allowed", "bool")),
            },
            status: match members.get("status") {
                None | Some(Value::Null) => None,
                Some(status @ Value::Object(_)) => Some(status.clone()),
                Some(other) => return Err(mismatch(other, "response.status", "v1.Status")),
            },
            patch,
            patch_type: text(members, "patchType")?,
            warnings: match members.get("warnings") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(list)) => {
                    let texts = list.iter().map(|item| match item {
                        Value::String(text) => Ok(text.clone()),
                        other => Err(mismatch(other, "response.warnings", "string")),
                    });
                    texts.collect::<Result<_, _>>()?
                }
                Some(other) => return Err(mismatch(other, "response.warnings", "[]string")),
            },
        })
    }
}

fn text(members: &Map<String, Value>, field: &str) -> Result<Option<String>, String> {
    match members.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(mismatch(other, &format!("response.{field}"), "string")),
    }
}

fn mismatch(value: &Value, field: &str, wanted: &str) -> String {
    let within = if field == "response" { "AdmissionReview" } else { "AdmissionResponse" };
    format!(
        "json: cannot unmarshal {} into Go struct field {within}.{field} of type {wanted}",
        type_name(value)
    )
}

/// Checks that an answer is one to the request `uid`.
///
/// # Errors
/// What is not in order (`VerifyAdmissionResponse`).
pub(super) fn verify(
    version: ReviewVersion,
    uid: &str,
    review: Review,
    mutating: bool,
) -> Result<Answer, String> {
    let Some(response) = review.response else { return Err("webhook response was absent".to_owned()) };
    let Response { allowed, status, warnings, .. } = response;
    let patch = match version {
        // What v1 checks, v1beta1 never did.
        ReviewVersion::V1Beta1 => {
            (mutating && !response.patch.is_empty()).then(|| (response.patch, "JSONPatch".to_owned()))
        }
        ReviewVersion::V1 => {
            if response.uid != uid {
                return Err(format!("expected response.uid={uid:?}, got {:?}", response.uid));
            }
            if review.api_version.is_empty() || review.kind.is_empty() {
                return Err(format!(
                    "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {}, Kind={}",
                    if review.api_version.is_empty() { "/" } else { &review.api_version },
                    review.kind
                ));
            }
            verified_patch(mutating, response.patch, response.patch_type)?
        }
    };
    Ok(Answer { allowed, status, patch, warnings })
}

fn verified_patch(
    mutating: bool,
    patch: Vec<u8>,
    patch_type: Option<String>,
) -> Result<Option<(Vec<u8>, String)>, String> {
    let wrong = match (mutating, patch.is_empty(), patch_type) {
        (_, true, None) => return Ok(None),
        (true, false, Some(patch_type)) if !patch_type.is_empty() => return Ok(Some((patch, patch_type))),
        (true, false, Some(_)) => r#"webhook returned invalid response.patchType of """#,
        (true, false, None) => "webhook returned response.patch but not response.patchType",
        (true, true, Some(_)) => "webhook returned response.patchType but not response.patch",
        (false, false, _) => "validating webhook may not return response.patch",
        (false, true, Some(_)) => "validating webhook may not return response.patchType",
    };
    Err(wrong.to_owned())
}

/// The refusal that a Status of a webhook makes (`ToStatusErr`): its code, reason and details are kept.
pub(super) fn denial(webhook: &str, status: Option<&Value>) -> ApiError {
    let nothing = Value::Null;
    let status = status.unwrap_or(&nothing);
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    let denied = format!("admission webhook {webhook:?} denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", why) | (why, _) => format!("{denied}: {why}"),
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| *code >= 400).and_then(|code| StatusCode::from_u16(code).ok());
    let error = ApiError::new(code.unwrap_or(StatusCode::BAD_REQUEST), text("reason").to_owned(), message);
    match details(&status["details"]) {
        Some(details) => error.with_details(details),
        None => error,
    }
}

/// The details of a Status, reduced to the fields that it has.
fn details(given: &Value) -> Option<Value> {
    let given = given.as_object()?;
    let mut details = Map::new();
    for field in ["name", "group", "kind", "uid"] {
        if let Some(text) = given.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()) {
            details.insert(field.to_owned(), text.into());
        }
    }
    let causes = given.get("causes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let causes: Vec<Value> = causes
        .iter()
        .map(|cause| {
            let mut kept = json!({});
            for field in ["reason", "message", "field"] {
                if let Some(text) = cause[field].as_str().filter(|text| !text.is_empty()) {
                    kept[field] = text.into();
                }
            }
            kept
        })
        .collect();
    if !causes.is_empty() {
        details.insert("causes".to_owned(), causes.into());
    }
    if let Some(seconds) = given.get("retryAfterSeconds").and_then(Value::as_i64).filter(|one| *one != 0) {
        details.insert("retryAfterSeconds".to_owned(), seconds.into());
    }
    Some(Value::Object(details))
}
