//! AlwaysDeny: nothing is admitted (`k8s.io/kubernetes/plugin/pkg/admission/deny`).

use kubewright_meta::ApiError;
use serde_json::Value;

use super::refusal::forbidden;
use super::{Plugin, Review};

/// Who has to write the first objects of a cluster all the same.
const SERVER: &str = "system:apiserver";

/// # Errors
/// 403, when the plugin is on.
pub(super) fn admit(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    if review.asks(Plugin::AlwaysDeny) && review.call.user.name != SERVER {
        return Err(forbidden(review, object, "admission control is denying all modifications"));
    }
    Ok(())
}
