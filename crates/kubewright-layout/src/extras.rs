//! What administrators may want beside an operator: policies for its network, a monitor of its metrics, roles for its users.

use serde_json::{Value, json};

use crate::inventory::{Inventory, Part};

/// The label of namespaces that metrics may be read from (kubebuilder's).
const READERS: &str = "metrics";

/// Who may reach the operator's metrics: namespaces with the label `metrics: enabled`.
pub(crate) fn metrics_policy(operator: &str, inventory: &Inventory<'_>) -> Option<Value> {
    let from = json!([{"namespaceSelector": {"matchLabels": {READERS: "enabled"}}}]);
    policy(operator, inventory, inventory.one(&Part::MetricsService)?, "metrics", Some(from))
}

/// Who may reach its webhooks: everybody, as an API server is in no namespace.
pub(crate) fn webhook_policy(operator: &str, inventory: &Inventory<'_>) -> Option<Value> {
    policy(operator, inventory, inventory.one(&Part::WebhookService)?, "webhook", None)
}

fn policy(
    operator: &str,
    inventory: &Inventory<'_>,
    service: &Value,
    what: &str,
    from: Option<Value>,
) -> Option<Value> {
    let labels = &service["spec"]["selector"];
    let port = service["spec"]["ports"][0]["targetPort"].as_u64()?;
    let mut rule = json!({"ports": [{"port": port, "protocol": "TCP"}]});
    if let Some(from) = from {
        rule["from"] = from;
    }
    Some(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": format!("{operator}-allow-{what}-traffic"),
            "namespace": inventory.home(),
            "labels": labels,
        },
        "spec": {"podSelector": {"matchLabels": labels}, "policyTypes": ["Ingress"], "ingress": [rule]},
    }))
}

/// What tells the Prometheus operator to read the metrics. The operator's certificate is its own, so that Prometheus cannot
/// verify it; it shows its token, and the operator asks the cluster whether it may read.
pub(crate) fn service_monitor(operator: &str, inventory: &Inventory<'_>) -> Option<Value> {
    let service = inventory.one(&Part::MetricsService)?;
    let labels = &service["metadata"]["labels"];
    Some(json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {
            "name": format!("{operator}-metrics-monitor"),
            "namespace": inventory.home(),
            "labels": labels,
        },
        "spec": {
            "endpoints": [{
                "path": "/metrics",
                "port": service["spec"]["ports"][0]["name"],
                "scheme": "https",
                "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                "tlsConfig": {"insecureSkipVerify": true},
            }],
            "selector": {"matchLabels": labels},
        },
    }))
}

/// Roles for those who use the operator's kinds, to be bound by an administrator: for each kind one that may do all, one
/// that may edit, one that may look; with the name of the file that kubebuilder has for it.
pub(crate) fn helper_roles(operator: &str, inventory: &Inventory<'_>) -> Vec<(String, Value)> {
    let all: &[&str] = &["*"];
    let editing: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
    let viewing: &[&str] = &["get", "list", "watch"];
    let mut roles = Vec::new();
    for definition in inventory.all(&Part::Definition) {
        let spec = &definition["spec"];
        let (Some(group), Some(plural)) = (spec["group"].as_str(), spec["names"]["plural"].as_str()) else {
            continue;
        };
        let kind = spec["names"]["kind"].as_str().unwrap_or(plural).to_lowercase();
        for (what, verbs) in [("admin", all), ("editor", editing), ("viewer", viewing)] {
            let role = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {
                    "name": format!("{operator}-{kind}-{what}"),
                    "labels": {"app.kubernetes.io/name": operator},
                },
                "rules": [
                    {"apiGroups": [group], "resources": [plural], "verbs": verbs},
                    {"apiGroups": [group], "resources": [format!("{plural}/status")], "verbs": ["get"]},
                ],
            });
            roles.push((format!("{kind}_{what}_role.yaml"), role));
        }
    }
    roles
}
