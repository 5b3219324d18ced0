//! What is told of a patch that cannot be read: from v1.37 on it is looked at before anything else
//! (`validateAndTranscodePatch` in `apiserver/pkg/endpoints/handlers/patch.go`).

use std::sync::Arc;

use kubewright_meta::ApiError;
use kubewright_schema::Schema;
use kubewright_schema::patch::{self, Patch};
use kubewright_spec::Version;

/// What v1.37 says of a patch that is no JSON, before it looks for the object.
pub(super) const NO_JSON: &str = "invalid JSON patch";

/// Reads a patch.
///
/// # Errors
/// As [`Patch::parse`], in the words of a version of Kubernetes.
pub(super) fn parse(
    version: Version,
    content_type: &str,
    body: &[u8],
    schema: Option<&Arc<Schema>>,
) -> Result<Patch, ApiError> {
    let is_late = version >= Version::V1_37;
    let is_json = match content_type {
        patch::JSON | patch::MERGE => true,
        patch::STRATEGIC => schema.is_some(),
        _ => false,
    };
    if is_late && is_json && kubewright_codec::json::decode(body).is_err() {
        return Err(ApiError::bad_request(NO_JSON));
    }
    Patch::parse(content_type, body, schema).map_err(|error| {
        let words = [
            ("error decoding YAML: error converting YAML to JSON: ", "error encoding patch: "),
            ("error decoding YAML: ", "error decoding patch: "),
        ];
        let told = words.iter().filter(|_| is_late && content_type == patch::APPLY);
        let told = told
            .filter_map(|(before, after)| Some(format!("{after}{}", error.message.strip_prefix(before)?)));
        match told.into_iter().next() {
            Some(message) => ApiError::bad_request(message),
            None => error,
        }
    })
}
