//! Questions of an API server about requests, and their answers (`admission.k8s.io/v1`).

mod field;
mod handler;
mod request;
mod response;

use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::handler::{Defaulting, DynHandler, Validating};
pub use self::{
    field::FieldError,
    handler::{Defaulter, Handler, Validator},
    request::{Operation, Request},
    response::{Denied, Response, ValidationResult, Warnings},
};

/// The API of reviews that is spoken here.
const API: &str = "admission.k8s.io/v1";

/// The request in a review.
///
/// # Errors
/// What the API server (or whoever else calls) is told when it is none.
pub(crate) fn request(review: &[u8]) -> Result<Request, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Review {
        #[serde(default)]
        api_version: String,
        #[serde(default)]
        kind: String,
        request: Option<Value>,
    }
    let review: Review =
        serde_json::from_slice(review).map_err(|error| format!("the body is no AdmissionReview: {error}"))?;
    match (&*review.api_version, &*review.kind) {
        (API, "AdmissionReview") => {}
        ("admission.k8s.io/v1beta1", "AdmissionReview") => {
            return Err(format!(
                "admission.k8s.io/v1beta1 is not spoken here: set admissionReviewVersions of the webhook to [\"v1\"] ({API})"
            ));
        }
        (version, kind) => {
            return Err(format!("the body is no AdmissionReview of {API}: it is {version:?}, kind {kind:?}"));
        }
    }
    let request = review.request.ok_or("the AdmissionReview has no request")?;
    Request::deserialize(request)
        .map_err(|error| format!("the request of the AdmissionReview is none: {error}"))
}
