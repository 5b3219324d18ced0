//! What field ownership has to know of a kind: how its objects look before they have anything in them, and which fields a
//! write leaves alone (Kubernetes v1.36, `k8s.io/api` and `GetResetFields` of `pkg/registry/*/*/strategy.go`).

use serde_json::Value;

use crate::fields::{Set, named};

/// What field ownership has to know of a kind.
#[derive(Clone, Debug, Default)]
pub struct Ownership {
    /// An object that nobody has written anything to: of built-in kinds it has the fields that Go writes even when they
    /// are empty. Nobody owns them for having been the first to write them.
    pub blank: Value,
    main: Set,
    status: Set,
    approval: Set,
    finalize: Set,
}

impl Ownership {
    /// Of a built-in kind.
    #[must_use]
    pub fn built_in(group: &str, kind: &str, has_status: bool) -> Self {
        let is_request = (group, kind) == ("certificates.k8s.io", "CertificateSigningRequest");
        let blank = serde_json::from_str(blank(group, kind)).unwrap_or_default();
        if is_request {
            return Self {
                blank,
                main: named(&[&["spec"], &["status"]]),
                status: named(&[&["spec"], &["status", "conditions"]]),
                approval: named(&[&["spec"], &["status", "certificate"]]),
                finalize: Set::default(),
            };
        }
        Self {
            blank,
            main: if has_status { named(&[&["status"]]) } else { Set::default() },
            status: match (group, kind) {
                ("", "Pod") => {
                    named(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
                }
                ("apps", "Deployment") => named(&[&["spec"], &["metadata", "labels"]]),
                ("networking.k8s.io", "ServiceCIDR")
                | ("storage.k8s.io", "VolumeAttachment")
                | ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")
                | ("flowcontrol.apiserver.k8s.io", _) => named(&[&["spec"], &["metadata"]]),
                _ => named(&[&["spec"]]),
            },
            approval: Set::default(),
            finalize: named(&[&["status"]]),
        }
    }

    /// Of a custom resource.
    #[must_use]
    pub fn custom(has_status: bool) -> Self {
        Self {
            blank: Value::Object(serde_json::Map::new()),
            main: if has_status { named(&[&["status"]]) } else { Set::default() },
            status: named(&[&["metadata"], &["spec"]]),
            ..Self::default()
        }
    }

    /// The fields that a write to the object (the empty subresource) or to a subresource leaves alone: it can neither own
    /// them nor take them from others.
    #[must_use]
    pub fn left_alone(&self, subresource: &str) -> Option<&Set> {
        match subresource {
            "" => Some(&self.main),
            "status" => Some(&self.status),
            "approval" => Some(&self.approval),
            "finalize" => Some(&self.finalize),
            _ => None,
        }
    }
}

/// What a new object of Go has in it, without metadata and status.
fn blank(group: &str, kind: &str) -> &'static str {
    match (group, kind) {
        ("", "Event") => {
            r#"{"eventTime":null,"firstTimestamp":null,"involvedObject":{},"lastTimestamp":null,"reportingComponent":"","reportingInstance":"","source":{}}"#
        }
        ("authorization.k8s.io", _) | ("authentication.k8s.io", "TokenReview") => r#"{"spec":{}}"#,
        ("", "LimitRange") => r#"{"spec":{"limits":null}}"#,
        ("", "Namespace")
        | ("", "Node")
        | ("", "PersistentVolume")
        | ("", "ReplicationController")
        | ("", "ResourceQuota")
        | ("", "Service")
        | ("networking.k8s.io", "IngressClass")
        | ("networking.k8s.io", "Ingress")
        | ("networking.k8s.io", "IPAddress")
        | ("networking.k8s.io", "ServiceCIDR")
        | ("policy", "PodDisruptionBudget")
        | ("storage.k8s.io", "CSIDriver")
        | ("admissionregistration.k8s.io", "MutatingAdmissionPolicy")
        | ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding")
        | ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")
        | ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding")
        | ("coordination.k8s.io", "Lease") => r#"{"spec":{}}"#,
        ("", "PersistentVolumeClaim") => r#"{"spec":{"resources":{}}}"#,
        ("", "Pod") => r#"{"spec":{"containers":null}}"#,
        ("", "PodTemplate") => r#"{"template":{"metadata":{},"spec":{"containers":null}}}"#,
        ("apps", "ControllerRevision") => r#"{"data":null,"revision":0}"#,
        ("apps", "DaemonSet") => {
            r#"{"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"updateStrategy":{}}}"#
        }
        ("apps", "Deployment") => {
            r#"{"spec":{"selector":null,"strategy":{},"template":{"metadata":{},"spec":{"containers":null}}}}"#
        }
        ("apps", "ReplicaSet") => {
            r#"{"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}}}}"#
        }
        ("apps", "StatefulSet") => {
            r#"{"spec":{"selector":null,"serviceName":"","template":{"metadata":{},"spec":{"containers":null}},"updateStrategy":{}}}"#
        }
        ("events.k8s.io", "Event") => {
            r#"{"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null,"deprecatedSource":{},"eventTime":null,"regarding":{}}"#
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            r#"{"spec":{"maxReplicas":0,"scaleTargetRef":{"kind":"","name":""}}}"#
        }
        ("batch", "CronJob") => {
            r#"{"spec":{"jobTemplate":{"metadata":{},"spec":{"template":{"metadata":{},"spec":{"containers":null}}}},"schedule":""}}"#
        }
        ("batch", "Job") => r#"{"spec":{"template":{"metadata":{},"spec":{"containers":null}}}}"#,
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            r#"{"spec":{"request":null,"signerName":""}}"#
        }
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => {
            r#"{"spec":{"matchingPrecedence":0,"priorityLevelConfiguration":{"name":""}}}"#
        }
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => r#"{"spec":{"type":""}}"#,
        ("networking.k8s.io", "NetworkPolicy") => r#"{"spec":{"podSelector":{}}}"#,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding")
        | ("rbac.authorization.k8s.io", "RoleBinding") => {
            r#"{"roleRef":{"apiGroup":"","kind":"","name":""}}"#
        }
        ("rbac.authorization.k8s.io", "ClusterRole") | ("rbac.authorization.k8s.io", "Role") => {
            r#"{"rules":null}"#
        }
        ("storage.k8s.io", "CSINode") => r#"{"spec":{"drivers":null}}"#,
        ("storage.k8s.io", "CSIStorageCapacity") => r#"{"storageClassName":""}"#,
        ("storage.k8s.io", "StorageClass") => r#"{"provisioner":""}"#,
        ("storage.k8s.io", "VolumeAttachment") => r#"{"spec":{"attacher":"","nodeName":"","source":{}}}"#,
        ("storage.k8s.io", "VolumeAttributesClass") => r#"{"driverName":""}"#,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            r#"{"spec":{"group":"","names":{"kind":"","plural":""},"scope":"","versions":null}}"#
        }
        ("scheduling.k8s.io", "PriorityClass") => r#"{"value":0}"#,
        ("node.k8s.io", "RuntimeClass") => r#"{"handler":""}"#,
        ("discovery.k8s.io", "EndpointSlice") => r#"{"addressType":"","endpoints":null,"ports":null}"#,
        _ => "{}",
    }
}
