//! The group `flowcontrol.apiserver.k8s.io`: which request waits where (`pkg/apis/flowcontrol`). The objects are kept and
//! checked as kube-apiserver does; no request is held back by them.

pub mod bootstrap;
mod levels;
mod printed;
mod schemas;

pub(crate) use levels::rules as priority_levels;
pub(crate) use schemas::rules as flow_schemas;

use kubewright_meta::FieldError;

use super::at::At;
use super::errors::Errors;

/// The types of conditions must be there, each once.
fn check_conditions(status: &At<'_>, errors: &mut Errors) {
    let mut seen = std::collections::BTreeSet::new();
    for condition in status.get("conditions").items() {
        let kind = condition.get("type");
        if !seen.insert(kind.text()) {
            errors.push(FieldError::duplicate(&kind.path, kind.text()));
        }
        errors.need(&kind);
    }
}
