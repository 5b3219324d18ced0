//! The answers of faults, in the words of Kubernetes.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use kubewright_meta::ApiError;
use serde_json::{Value, json};

use super::body::Body;
use super::request_info::RequestInfo;
use super::rule::ApiFault;

/// The answer of a fault that answers itself; `None` for one that does not.
pub(super) fn answer(fault: &ApiFault, info: &RequestInfo) -> Option<Response<Body>> {
    match fault {
        ApiFault::Conflict {} => Some(status(&conflict(info))),
        ApiFault::TooManyRequests { retry_after } => Some(too_many(*retry_after)),
        ApiFault::Error { code, reason, message } => {
            Some(status(&error(*code, reason.as_deref(), message.as_deref(), info)))
        }
        _ => None,
    }
}

/// 409 as a registry says it (`k8s.io/apiserver/pkg/registry/generic/registry/store.go`, `OptimisticLockErrorMsg`).
fn conflict(info: &RequestInfo) -> ApiError {
    let message = format!(
        "Operation cannot be fulfilled on {} {:?}: the object has been modified; please apply your changes to the latest version and try again",
        group_resource(info),
        info.name
    );
    ApiError::new(StatusCode::CONFLICT, "Conflict", message).with_details(details(info))
}

/// 429 as the filters say it (`k8s.io/apiserver/pkg/server/filters/maxinflight.go`): no Status.
fn too_many(retry_after: u32) -> Response<Body> {
    let mut response = respond(
        StatusCode::TOO_MANY_REQUESTS,
        "text/plain; charset=utf-8",
        Bytes::from_static(b"Too many requests, please try again later.\n"),
    );
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    headers.insert(RETRY_AFTER, retry_after.into());
    response
}

/// 504 as the filter says it whose time is over (`k8s.io/apiserver/pkg/server/filters/timeout.go`).
pub(super) fn timed_out() -> ApiError {
    let message = "Timeout: request did not complete within the allotted timeout";
    ApiError::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).with_details(json!({}))
}

/// An error of any code; reason and message are those that Kubernetes gives the code where it knows nothing else
/// (`k8s.io/apimachinery/pkg/api/errors`, `NewGenericServerResponse`).
fn error(code: u16, reason: Option<&str>, message: Option<&str>, info: &RequestInfo) -> ApiError {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let (usual_reason, usual_message) = usual(code);
    ApiError::new(
        code,
        reason.unwrap_or(usual_reason).to_owned(),
        message.unwrap_or(usual_message).to_owned(),
    )
    .with_details(details(info))
}

fn usual(code: StatusCode) -> (&'static str, &'static str) {
    match code.as_u16() {
        400 => ("BadRequest", "the server rejected our request for an unknown reason"),
        401 => ("Unauthorized", "the server has asked for the client to provide credentials"),
        403 => ("Forbidden", "forbidden by a fault"),
        404 => ("NotFound", "the server could not find the requested resource"),
        405 => ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
        409 => ("Conflict", "the server reported a conflict"),
        410 => ("Expired", "the provided resource version is too old"),
        422 => ("Invalid", "the server rejected our request due to an error in our request"),
        429 => (
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        500.. => ("InternalError", "Internal error occurred: a fault"),
        _ => ("Unknown", "unknown"),
    }
}

fn group_resource(info: &RequestInfo) -> String {
    if info.group.is_empty() { info.resource.clone() } else { format!("{}.{}", info.resource, info.group) }
}

fn details(info: &RequestInfo) -> Value {
    let parts = [("name", &info.name), ("group", &info.group), ("kind", &info.resource)];
    let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
    Value::Object(parts.map(|(key, text)| (key.to_owned(), text.as_str().into())).collect())
}

/// An error as a Status in JSON, which every client reads.
pub(super) fn status(error: &ApiError) -> Response<Body> {
    respond(error.code, "application/json", error.to_status().to_string().into())
}

pub(super) fn respond(code: StatusCode, media_type: &'static str, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::own(bytes));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
