//! Where an object belongs: what its body says of that has to be what the URL says.

use kubewright_meta::{ApiError, object};
use serde_json::Value;

use super::Call;

/// 400: the object says that it belongs elsewhere.
fn elsewhere() -> ApiError {
    ApiError::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    )
}

/// The object belongs where the URL says: its namespace and name are the URL's, or are not given.
pub(crate) fn place(call: Call<'_>, draft: &mut Value) -> Result<(), ApiError> {
    place_in_namespace(call, draft)?;
    let given = object::name(draft);
    if !call.name.is_empty() {
        if !given.is_empty() && given != call.name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({})",
                call.name
            )));
        }
        object::set_meta(draft, "name", Some(call.name.into()));
    }
    Ok(())
}

/// The object's namespace is the URL's, or is not given. What namespace an object of the cluster names does not matter
/// (`k8s.io/apiserver/pkg/registry/rest/meta.go`, `EnsureObjectNamespaceMatchesRequestNamespace`).
pub(crate) fn place_in_namespace(call: Call<'_>, draft: &mut Value) -> Result<(), ApiError> {
    let given = object::namespace(draft);
    if call.kind.namespaced() {
        if !given.is_empty() && given != call.namespace {
            return Err(elsewhere());
        }
        object::set_meta(draft, "namespace", Some(call.namespace.into()));
    } else if !given.is_empty() {
        object::set_meta(draft, "namespace", None);
    }
    Ok(())
}

/// 400 for a replacement that does not say which object it is about, or another one
/// (`k8s.io/apiserver/pkg/endpoints/handlers/rest.go`, `checkName`).
pub(crate) fn check_name(call: Call<'_>, given: &str) -> Result<(), ApiError> {
    match given {
        "" => Err(ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name
        ))),
        same if same == call.name => Ok(()),
        other => Err(ApiError::bad_request(format!(
            "the name of the object ({other}) does not match the name on the URL ({})",
            call.name
        ))),
    }
}
