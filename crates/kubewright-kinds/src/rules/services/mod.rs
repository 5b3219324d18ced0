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
use super::fill;

pub(crate) use endpoints::rules as endpoints;
pub(crate) use service::rules;
pub(crate) use slices::rules as endpoint_slices;

/// What is wrong with the cluster addresses of a service, whose server chooses them only where nothing is
/// (`ValidateServiceClusterIPsRelatedFields`). What may not change is told later, with the rest.
#[must_use]
pub fn validate_cluster_ips(service: &Value) -> Vec<FieldError> {
    Errors::of(|errors| addresses::check_cluster_ips(&At::root(service).get("spec"), errors))
}

/// Tells the single cluster address of a new service as a list too, where the server gives addresses (`normalizeClusterIPs`).
pub fn list_cluster_ip(service: &mut Value) {
    if let Some(spec) = fill::present(service, "spec") {
        change::list_cluster_ip(spec);
    }
}

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
