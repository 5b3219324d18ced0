//! Kinds that speak of each other.

use serde_json::{Value, json};

/// What a conversation about several kinds is about.
pub(super) const THEMES: &[&[&str]] = &[
    &["ServiceAccount", "Pod", "Secret", "PodDisruptionBudget"],
    &["Pod", "PodDisruptionBudget", "ServiceAccount"],
    &["Deployment", "HorizontalPodAutoscaler", "ReplicaSet"],
    &["StatefulSet", "Service", "PersistentVolumeClaim"],
    &["PersistentVolumeClaim", "PersistentVolume", "StorageClass", "Pod"],
    &["ResourceClaim", "DeviceClass", "ResourceClaimTemplate", "Pod"],
    &["Ingress", "Service", "EndpointSlice", "IngressClass"],
    &["LimitRange", "Pod", "PersistentVolumeClaim"],
    &["ResourceQuota", "ConfigMap", "Service", "Pod"],
    &["PriorityClass", "RuntimeClass", "Pod"],
    &["Role", "RoleBinding", "ServiceAccount", "ClusterRole"],
    &["Service", "Endpoints", "EndpointSlice", "NetworkPolicy"],
    &["Job", "CronJob", "Pod"],
    &["Event", "Event", "ConfigMap"],
    &["HorizontalPodAutoscaler", "HorizontalPodAutoscaler"],
    &["ConfigMap", "Secret", "Pod"],
    &["DaemonSet", "ControllerRevision", "Pod"],
    &["ReplicationController", "PodTemplate", "Service"],
];

/// Kinds that the server itself reads, a moment after they were written.
pub(super) const READ_LATER: &[&str] = &[
    "LimitRange",
    "ResourceQuota",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "IngressClass",
    "DeviceClass",
    "ServiceAccount",
];

/// Fields that name an object of a kind.
const NAMES: &[(&str, &str)] = &[
    ("serviceAccountName", "ServiceAccount"),
    ("claimName", "PersistentVolumeClaim"),
    ("secretName", "Secret"),
    ("priorityClassName", "PriorityClass"),
    ("runtimeClassName", "RuntimeClass"),
    ("storageClassName", "StorageClass"),
    ("volumeName", "PersistentVolume"),
    ("ingressClassName", "IngressClass"),
    ("deviceClassName", "DeviceClass"),
    ("resourceClaimName", "ResourceClaim"),
    ("resourceClaimTemplateName", "ResourceClaimTemplate"),
    ("serviceName", "Service"),
];

/// Makes an object speak of those of the conversation: `of` is kinds and names.
pub(super) fn refer(object: &mut Value, of: &[(String, String)]) {
    let name = |kind: &str| of.iter().find(|(known, _)| known == kind).map(|(_, name)| name.clone());
    match object {
        Value::Object(members) => {
            let kind = members.get("kind").and_then(Value::as_str).map(str::to_owned);
            if let (Some(name), Some(Value::String(_))) =
                (kind.as_deref().and_then(name), members.get("name"))
            {
                members.insert("name".into(), json!(name));
            }
            for (key, value) in members.iter_mut() {
                let meant = NAMES.iter().find(|(field, _)| field == key).and_then(|(_, kind)| name(kind));
                match (meant, &value) {
                    (Some(name), Value::String(_)) => *value = json!(name),
                    _ => refer(value, of),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, of)),
        _ => {}
    }
}
