//! Which printer prints which built-in kind.

use jiff::Timestamp;
use serde_json::Value;

use super::column::{Column, NAME, date};
use super::value::{cells, text};
use super::{
    admission, batch, cluster, config, events, flow, network, pods, rbac, scaling, storage, workloads,
};

/// The columns of a built-in kind, and the function that makes a row: one cell for each column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Printer {
    pub(super) columns: &'static [Column],
    pub(super) cells: fn(&Value, Timestamp) -> Vec<Value>,
}

/// The printer of kinds that have none of their own (`k8s.io/apiserver/pkg/registry/rest/table.go`).
pub(super) const NAME_AND_CREATION: Printer = Printer {
    columns: &[NAME, date("Created At")],
    cells: |object, _| cells![text(object, "/metadata/name"), text(object, "/metadata/creationTimestamp")],
};

/// The printer of a built-in kind.
pub(super) fn printer(group: &str, plural: &str) -> Printer {
    match (group, plural) {
        ("", "pods") => pods::PODS,
        ("", "podtemplates") => workloads::POD_TEMPLATES,
        ("", "replicationcontrollers") => workloads::REPLICATION_CONTROLLERS,
        ("", "configmaps") => config::CONFIG_MAPS,
        ("", "secrets") => config::SECRETS,
        ("", "serviceaccounts") => config::SERVICE_ACCOUNTS,
        ("", "resourcequotas") => config::RESOURCE_QUOTAS,
        ("", "services") => network::SERVICES,
        ("", "endpoints") => network::ENDPOINTS,
        ("", "namespaces") => cluster::NAMESPACES,
        ("", "nodes") => cluster::NODES,
        ("", "persistentvolumes") => storage::VOLUMES,
        ("", "persistentvolumeclaims") => storage::CLAIMS,
        ("" | "events.k8s.io", "events") => events::EVENTS,
        ("apps", "controllerrevisions") => workloads::CONTROLLER_REVISIONS,
        ("apps", "daemonsets") => workloads::DAEMON_SETS,
        ("apps", "deployments") => workloads::DEPLOYMENTS,
        ("apps", "replicasets") => workloads::REPLICA_SETS,
        ("apps", "statefulsets") => workloads::STATEFUL_SETS,
        ("autoscaling", "horizontalpodautoscalers") => scaling::AUTOSCALERS,
        ("policy", "poddisruptionbudgets") => scaling::DISRUPTION_BUDGETS,
        ("batch", "cronjobs") => batch::CRON_JOBS,
        ("batch", "jobs") => batch::JOBS,
        ("certificates.k8s.io", "certificatesigningrequests") => cluster::SIGNING_REQUESTS,
        ("coordination.k8s.io", "leases") => cluster::LEASES,
        ("node.k8s.io", "runtimeclasses") => cluster::RUNTIME_CLASSES,
        ("scheduling.k8s.io", "priorityclasses") => cluster::PRIORITY_CLASSES,
        ("discovery.k8s.io", "endpointslices") => network::ENDPOINT_SLICES,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => flow::SCHEMAS,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => flow::LEVELS,
        ("networking.k8s.io", "ingresses") => network::INGRESSES,
        ("networking.k8s.io", "ingressclasses") => network::INGRESS_CLASSES,
        ("networking.k8s.io", "ipaddresses") => network::IP_ADDRESSES,
        ("networking.k8s.io", "networkpolicies") => network::NETWORK_POLICIES,
        ("networking.k8s.io", "servicecidrs") => network::SERVICE_CIDRS,
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => rbac::BINDINGS,
        ("storage.k8s.io", "csidrivers") => storage::DRIVERS,
        ("storage.k8s.io", "csinodes") => storage::CSI_NODES,
        ("storage.k8s.io", "storageclasses") => storage::CLASSES,
        ("storage.k8s.io", "volumeattachments") => storage::ATTACHMENTS,
        ("storage.k8s.io", "volumeattributesclasses") => storage::ATTRIBUTES_CLASSES,
        ("admissionregistration.k8s.io", plural) => admission::printer(plural),
        _ => NAME_AND_CREATION,
    }
}
