//! Services and their endpoints (`pkg/apis/core/validation`, `pkg/apis/discovery/validation`).

mod addresses;
mod change;
mod endpoints;
mod load_balancer;
mod service;
mod slices;

use kubewright_meta::FieldError;
use serde_json::Value;

use super::at::At;
use super::errors::Errors;

pub(crate) use endpoints::rules as endpoints;
pub(crate) use service::rules;
pub(crate) use slices::rules as endpoint_slices;

/// What is wrong with the cluster addresses of a service, whose server chooses them only where nothing is
/// (`ValidateServiceClusterIPsRelatedFields`).
#[must_use]
pub fn validate_cluster_ips(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    Errors::of(|errors| {
        let spec = At::root(new).get("spec");
        addresses::check_cluster_ips(&spec, errors);
        // What makes no sense is not compared with what was.
        if let (Some(old), 0) = (old, errors.count()) {
            change::check_cluster_ips(&spec, &At::root(old).get("spec"), errors);
        }
    })
}

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
