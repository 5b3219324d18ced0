//! The built-in controllers of the embedded control plane: what a cluster does by itself.
//!
//! Each is a file of its own, written with the SDK and told apart into observe (what the caches show), plan (a pure
//! function from that to a list of writes) and act. [`all`] is the table of them; [`select`] reads `--controllers`.

mod bootstrap_tokens;
mod certificates;
mod claims;
mod cluster_roles;
mod cronjob;
mod daemonset;
mod deployment;
mod discovery;
mod disruption;
mod endpoint_mirror;
mod endpoint_slices;
mod endpoints;
mod ephemeral_volumes;
mod event;
mod expansion;
mod garbage_collector;
mod go_text;
mod hash;
mod history;
mod horizontal_autoscaler;
mod job;
mod legacy_tokens;
mod namespace;
mod newer_kinds;
mod node_lifecycle;
mod node_ttl;
mod pod;
mod pod_control;
mod pod_gc;
mod protection;
mod quota;
mod replicaset;
mod resource_claims;
mod root_ca;
mod secrets;
mod service_account;
mod service_account_tokens;
mod service_cidrs;
mod services;
mod share;
mod statefulset;
mod storage_migration;
mod table;
mod taint_eviction;
mod ttl_after_finished;
mod volumes;

pub use self::table::{Builtin, Identity, Setup, UnknownController, all, select};
pub use kubewright_node::{Log, NoLog, command_output, container_log, is_simulated};

use k8s_openapi::api::core::v1::Namespace;
use kubewright_runtime::Error;

/// Whether the API server refused an object because its namespace is going away; then no retry helps.
fn is_namespace_terminating(error: &Error) -> bool {
    let causes = error.status().and_then(|status| status.details.as_ref()).map(|details| &details.causes);
    causes.is_some_and(|causes| causes.iter().any(|cause| cause.reason == "NamespaceTerminating"))
}

/// Whether the namespace is not going away.
fn is_active_namespace(namespace: &Namespace) -> bool {
    let phase = namespace.status.as_ref().and_then(|status| status.phase.as_deref());
    namespace.metadata.deletion_timestamp.is_none() && phase != Some("Terminating")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use serde_json::json;

    /// A namespace `shop` in this phase.
    pub(crate) fn namespace(phase: &str) -> Namespace {
        kubewright_objects::from_value(json!({
            "metadata": {"name": "shop", "uid": "uid-shop"},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": phase},
        }))
        .expect("a namespace")
    }
}
