//! How plugins refuse (`k8s.io/apiserver/pkg/admission/errors.go`).

use kubewright_meta::{ApiError, object, text};
use serde_json::Value;

use super::Review;

/// 403 for the object of a review. One without a name yet goes by its prefix.
pub(super) fn forbidden(review: &Review<'_>, object: &Value, why: &str) -> ApiError {
    let kind = review.call.kind;
    let names = [review.call.name, object::name(object), object::meta_text(object, "generateName")];
    let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
    ApiError::forbidden(&kind.group, &kind.plural, name, why)
}

/// Why a client of Kubernetes does not even ask for an object of that name (`k8s.io/client-go/rest`, `Request.Name`).
pub(super) fn unaskable(name: &str) -> Option<String> {
    let wrong = text::path_segment(name);
    (!wrong.is_empty()).then(|| format!("invalid resource name {name:?}: [{}]", wrong.join(" ")))
}

/// Several complaints as one (`k8s.io/apimachinery/pkg/util/errors`, `NewAggregate`); nothing when there is none.
pub(super) fn joined(complaints: &[String]) -> Option<String> {
    let mut told: Vec<&str> = Vec::new();
    for complaint in complaints {
        if !told.contains(&complaint.as_str()) {
            told.push(complaint);
        }
    }
    match told.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}
