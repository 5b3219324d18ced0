//! Nodes, namespaces and what else runs a cluster.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde_json::Value;

use super::age::{age, human};
use super::column::{NAME, boolean, integer, text as column};
use super::printer::Printer;
use super::value::{at, cells, flag, items, number, text, text_or};

/// Prints APIServices (`k8s.io/kube-aggregator/pkg/registry/apiservice/etcd`).
pub const API_SERVICES: Printer =
    Printer::new(&[NAME, column("Service"), column("Available"), column("Age")], |object, now| {
        let service = match at(object, "/spec/service") {
            Some(service) => format!("{}/{}", text(service, "/namespace"), text(service, "/name")),
            None => "Local".to_owned(),
        };
        let condition =
            items(object, "/status/conditions").iter().find(|one| text(one, "/type") == "Available");
        let available = match condition.map(|found| (text(found, "/status"), text(found, "/reason"))) {
            None => "Unknown".to_owned(),
            Some((status, reason)) if status != "True" && !reason.is_empty() => {
                format!("{status} ({reason})")
            }
            Some((status, _)) => status.to_owned(),
        };
        cells![text(object, "/metadata/name"), service, available, age(object, now)]
    });

/// Prints namespaces.
pub const NAMESPACES: Printer = Printer::new(&[NAME, column("Status"), column("Age")], |namespace, now| {
    cells![text(namespace, "/metadata/name"), text(namespace, "/status/phase"), age(namespace, now)]
});

/// Prints nodes.
pub const NODES: Printer = Printer::new(
    &[
        NAME,
        column("Status"),
        column("Roles"),
        column("Age"),
        column("Version"),
        column("Internal-IP").wide(),
        column("External-IP").wide(),
        column("OS-Image").wide(),
        column("Kernel-Version").wide(),
        column("Container-Runtime").wide(),
    ],
    |node, now| {
        let kernel = text_or(node, "/status/nodeInfo/kernelVersion", "<unknown>");
        let kernel = match text(node, "/status/nodeInfo/architecture") {
            "" => kernel.to_owned(),
            architecture => format!("{kernel} ({architecture})"),
        };
        cells![
            text(node, "/metadata/name"),
            node_status(node),
            roles(node),
            age(node, now),
            text(node, "/status/nodeInfo/kubeletVersion"),
            address(node, "InternalIP"),
            address(node, "ExternalIP"),
            text_or(node, "/status/nodeInfo/osImage", "<unknown>"),
            kernel,
            text_or(node, "/status/nodeInfo/containerRuntimeVersion", "<unknown>"),
        ]
    },
);

/// Prints leases.
pub const LEASES: Printer = Printer::new(&[NAME, column("Holder"), column("Age")], |lease, now| {
    cells![text(lease, "/metadata/name"), text(lease, "/spec/holderIdentity"), age(lease, now)]
});

/// Prints runtime classes.
pub const RUNTIME_CLASSES: Printer = Printer::new(&[NAME, column("Handler"), column("Age")], |class, now| {
    cells![text(class, "/metadata/name"), text(class, "/handler"), age(class, now)]
});

/// Prints priority classes.
pub const PRIORITY_CLASSES: Printer = Printer::new(
    &[NAME, integer("Value"), boolean("Global-Default"), column("Age"), column("PreemptionPolicy")],
    |class, now| {
        cells![
            text(class, "/metadata/name"),
            number(class, "/value"),
            flag(class, "/globalDefault"),
            age(class, now),
            text(class, "/preemptionPolicy"),
        ]
    },
);

/// Prints certificate signing requests.
pub const SIGNING_REQUESTS: Printer = Printer::new(
    &[
        NAME,
        column("Age"),
        column("SignerName"),
        column("Requestor"),
        column("RequestedDuration"),
        column("Condition"),
    ],
    |request, now| {
        let duration = at(request, "/spec/expirationSeconds").and_then(Value::as_i64);
        cells![
            text(request, "/metadata/name"),
            age(request, now),
            text_or(request, "/spec/signerName", "<none>"),
            text(request, "/spec/username"),
            duration.map_or("<none>".to_owned(), |seconds| human(SignedDuration::from_secs(seconds))),
            signing_status(request),
        ]
    },
);

/// Prints how the programs of the control plane are.
pub const COMPONENTS: Printer =
    Printer::new(&[NAME, column("Status"), column("Message"), column("Error")], |component, _| {
        let healthy = items(component, "/conditions").iter().find(|one| text(one, "/type") == "Healthy");
        let status = match healthy.map(|condition| text(condition, "/status")) {
            Some("True") => "Healthy",
            Some(_) => "Unhealthy",
            None => "Unknown",
        };
        let of = |pointer: &str| healthy.map_or("", |condition| text(condition, pointer));
        cells![text(component, "/metadata/name"), status, of("/message"), of("/error")]
    });

fn node_status(node: &Value) -> String {
    let ready = items(node, "/status/conditions").iter().rfind(|one| text(one, "/type") == "Ready");
    let status = match ready.map(|condition| text(condition, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if flag(node, "/spec/unschedulable") { format!("{status},SchedulingDisabled") } else { status.to_owned() }
}

fn roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.as_str() {
            "kubernetes.io/role" => value.as_str(),
            key => key.strip_prefix("node-role.kubernetes.io/"),
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let found = items(node, "/status/addresses").iter().find(|address| text(address, "/type") == kind);
    found.map_or("<none>", |address| text(address, "/address"))
}

fn signing_status(request: &Value) -> String {
    let has = |kind: &str| items(request, "/status/conditions").iter().any(|one| text(one, "/type") == kind);
    let mut status = match () {
        () if has("Denied") => "Denied",
        () if has("Approved") => "Approved",
        () => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !text(request, "/status/certificate").is_empty() {
        status.push_str(",Issued");
    }
    status
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_shows_its_state_and_system() {
        let node = json!({
            "metadata": {
                "name": "n",
                "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge", "a": "b"},
            },
            "spec": {"unschedulable": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "192.0.2.7"}],
                "nodeInfo": {"kubeletVersion": "v1.36.0", "kernelVersion": "6.1", "architecture": "amd64"},
            },
        });
        assert_eq!(
            (NODES.cells)(&node, Timestamp::UNIX_EPOCH),
            cells![
                "n",
                "Ready,SchedulingDisabled",
                "edge,worker",
                "<unknown>",
                "v1.36.0",
                "192.0.2.7",
                "<none>",
                "<unknown>",
                "6.1 (amd64)",
                "<unknown>",
            ]
        );
        assert_eq!(node_status(&json!({})), "Unknown");
        let lost = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
        assert_eq!(node_status(&lost), "NotReady");
    }

    #[test]
    fn a_signing_request_shows_how_far_it_is() {
        let request = json!({
            "metadata": {"name": "r"},
            "spec": {"signerName": "s", "username": "u", "expirationSeconds": 86400},
            "status": {"conditions": [{"type": "Approved"}], "certificate": "x"},
        });
        assert_eq!(
            (SIGNING_REQUESTS.cells)(&request, Timestamp::UNIX_EPOCH),
            cells!["r", "<unknown>", "s", "u", "24h", "Approved,Issued"]
        );
    }
}
