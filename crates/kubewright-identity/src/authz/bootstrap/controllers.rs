//! The cluster roles of the built-in controllers, by the names of their service accounts in `kube-system`; the role of
//! `x` is called `system:controller:x`. Facts of Kubernetes v1.36 (`bootstrappolicy/controller_policy.go`).

use super::{EVENTS, RoleFacts, named, on};

pub(super) const CONTROLLERS: &[RoleFacts] = &[
    (
        "attachdetach-controller",
        &[
            on("list watch", "core", "persistentvolumeclaims persistentvolumes"),
            on("get list watch", "core", "nodes"),
            on("patch update", "core", "nodes/status"),
            on("list watch", "core", "pods"),
            EVENTS,
            on("create delete get list watch", "storage.k8s.io", "volumeattachments"),
            on("get list watch", "storage.k8s.io", "csidrivers"),
            on("get list watch", "storage.k8s.io", "csinodes"),
        ],
    ),
    (
        "certificate-controller",
        &[
            on("delete get list watch", "certificates.k8s.io", "certificatesigningrequests"),
            on(
                "update",
                "certificates.k8s.io",
                "certificatesigningrequests/approval certificatesigningrequests/status",
            ),
            named("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
            named(
                "sign",
                "certificates.k8s.io",
                "signers",
                "kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown",
            ),
            on("create", "authorization.k8s.io", "subjectaccessreviews"),
            EVENTS,
        ],
    ),
    (
        "clusterrole-aggregation-controller",
        &[on("escalate get list patch update watch", "rbac.authorization.k8s.io", "clusterroles")],
    ),
    (
        "cronjob-controller",
        &[
            on("get list update watch", "batch", "cronjobs"),
            on("create delete get list patch update watch", "batch", "jobs"),
            on("update", "batch", "cronjobs/status"),
            on("update", "batch", "cronjobs/finalizers"),
            on("delete list watch", "core", "pods"),
            EVENTS,
        ],
    ),
    (
        "daemon-set-controller",
        &[
            on("get list watch", "apps extensions", "daemonsets"),
            on("update", "apps extensions", "daemonsets/status"),
            on("update", "apps extensions", "daemonsets/finalizers"),
            on("list watch", "core", "nodes"),
            on("create delete list patch watch", "core", "pods"),
            on("create", "core", "pods/binding"),
            on("create delete get list patch update watch", "apps", "controllerrevisions"),
            EVENTS,
        ],
    ),
    (
        "deployment-controller",
        &[
            on("get list update watch", "apps extensions", "deployments"),
            on("update", "apps extensions", "deployments/status"),
            on("update", "apps extensions", "deployments/finalizers"),
            on("create delete get list patch update watch", "apps extensions", "replicasets"),
            on("get list update watch", "core", "pods"),
            EVENTS,
        ],
    ),
    (
        "device-taint-eviction-controller",
        &[
            on("delete get list watch", "core", "pods"),
            on("patch update", "core", "pods/status"),
            on("get list watch", "resource.k8s.io", "resourceclaims"),
            on("get list watch", "resource.k8s.io", "resourceslices"),
            on("get list watch", "resource.k8s.io", "deviceclasses"),
            EVENTS,
        ],
    ),
    (
        "disruption-controller",
        &[
            on("get list watch", "apps extensions", "deployments"),
            on("get list watch", "apps extensions", "replicasets"),
            on("get list watch", "core", "replicationcontrollers"),
            on("get list watch", "policy", "poddisruptionbudgets"),
            on("get list watch", "apps", "statefulsets"),
            on("update", "policy", "poddisruptionbudgets/status"),
            on("patch update", "core", "pods/status"),
            on("get", "*", "*/scale"),
            EVENTS,
        ],
    ),
    (
        "endpoint-controller",
        &[
            on("get list watch", "core", "pods services"),
            on("create delete get list update watch", "core", "endpoints"),
            on("create", "core", "endpoints/restricted"),
            EVENTS,
        ],
    ),
    (
        "endpointslice-controller",
        &[
            on("get list watch", "core", "nodes pods services"),
            on("update", "core", "services/finalizers"),
            on("create delete get list update watch", "discovery.k8s.io", "endpointslices"),
            EVENTS,
        ],
    ),
    (
        "endpointslicemirroring-controller",
        &[
            on("get list watch", "core", "endpoints services"),
            on("update", "core", "services/finalizers"),
            on("update", "core", "endpoints/finalizers"),
            on("create delete get list update watch", "discovery.k8s.io", "endpointslices"),
            EVENTS,
        ],
    ),
    (
        "ephemeral-volume-controller",
        &[
            on("get list watch", "core", "pods"),
            on("update", "core", "pods/finalizers"),
            on("create get list watch", "core", "persistentvolumeclaims"),
            EVENTS,
        ],
    ),
    (
        "expand-controller",
        &[
            on("get list patch update watch", "core", "persistentvolumes"),
            on("patch update", "core", "persistentvolumeclaims/status"),
            on("get list watch", "core", "persistentvolumeclaims"),
            EVENTS,
        ],
    ),
    ("generic-garbage-collector", &[on("delete get list patch update watch", "*", "*"), EVENTS]),
    (
        "horizontal-pod-autoscaler",
        &[
            on("get list watch", "autoscaling", "horizontalpodautoscalers"),
            on("update", "autoscaling", "horizontalpodautoscalers/status"),
            on("get update", "*", "*/scale"),
            on("list watch", "core", "pods"),
            on("list watch", "metrics.k8s.io", "pods"),
            on("get list watch", "custom.metrics.k8s.io", "*"),
            on("get list watch", "external.metrics.k8s.io", "*"),
            EVENTS,
        ],
    ),
    (
        "job-controller",
        &[
            on("get list patch update watch", "batch", "jobs"),
            on("update", "batch", "jobs/status"),
            on("update", "batch", "jobs/finalizers"),
            on("create delete list patch watch", "core", "pods"),
            EVENTS,
        ],
    ),
    (
        "legacy-service-account-token-cleaner",
        &[
            named("get", "core", "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
            on("delete patch", "core", "secrets"),
        ],
    ),
    (
        "namespace-controller",
        &[
            on("delete get list watch", "core", "namespaces"),
            on("update", "core", "namespaces/finalize namespaces/status"),
            on("delete deletecollection get list watch", "*", "*"),
        ],
    ),
    (
        "node-controller",
        &[
            on("delete get list patch update watch", "core", "nodes"),
            on("patch update", "core", "nodes/status"),
            on("patch update", "core", "pods/status"),
            on("delete get list watch", "core", "pods"),
            EVENTS,
        ],
    ),
    (
        "persistent-volume-binder",
        &[
            on("create delete get list update watch", "core", "persistentvolumes"),
            on("update", "core", "persistentvolumes/status"),
            on("get list update watch", "core", "persistentvolumeclaims"),
            on("update", "core", "persistentvolumeclaims/status"),
            on("create delete get list watch", "core", "pods"),
            on("get list watch", "storage.k8s.io", "storageclasses"),
            on("list watch", "core", "nodes"),
            EVENTS,
            on("watch", "core", "events"),
        ],
    ),
    (
        "pod-garbage-collector",
        &[
            on("delete list watch", "core", "pods"),
            on("get list watch", "core", "nodes"),
            on("patch", "core", "pods/status"),
        ],
    ),
    ("pv-protection-controller", &[on("get list update watch", "core", "persistentvolumes"), EVENTS]),
    (
        "pvc-protection-controller",
        &[
            on("get list update watch", "core", "persistentvolumeclaims"),
            on("update", "core", "persistentvolumeclaims/status"),
            on("get list watch", "core", "pods"),
            EVENTS,
        ],
    ),
    (
        "replicaset-controller",
        &[
            on("get list update watch", "apps extensions", "replicasets"),
            on("update", "apps extensions", "replicasets/status"),
            on("update", "apps extensions", "replicasets/finalizers"),
            on("create delete list patch watch", "core", "pods"),
            EVENTS,
        ],
    ),
    (
        "replication-controller",
        &[
            on("get list update watch", "core", "replicationcontrollers"),
            on("update", "core", "replicationcontrollers/status"),
            on("update", "core", "replicationcontrollers/finalizers"),
            on("create delete list patch watch", "core", "pods"),
            EVENTS,
        ],
    ),
    (
        "resource-claim-controller",
        &[
            on("get list watch", "core", "pods"),
            on("update", "core", "pods/finalizers"),
            on("create delete get list watch", "resource.k8s.io", "resourceclaims"),
            on("patch update", "resource.k8s.io", "resourceclaims resourceclaims/status"),
            on("patch update", "core", "pods/status"),
            EVENTS,
            on("patch update", "resource.k8s.io", "resourceclaims/binding"),
        ],
    ),
    (
        "resourcequota-controller",
        &[on("list watch", "*", "*"), on("update", "core", "resourcequotas/status"), EVENTS],
    ),
    ("root-ca-cert-publisher", &[on("create update", "core", "configmaps"), EVENTS]),
    ("route-controller", &[on("list watch", "core", "nodes"), on("patch", "core", "nodes/status"), EVENTS]),
    (
        "selinux-warning-controller",
        &[
            EVENTS,
            on("get list watch", "core", "persistentvolumes"),
            on("get list watch", "core", "persistentvolumeclaims"),
            on("get list watch", "core", "pods"),
            on("get list watch", "storage.k8s.io", "csidrivers"),
        ],
    ),
    ("service-account-controller", &[on("create", "core", "serviceaccounts"), EVENTS]),
    (
        "service-cidrs-controller",
        &[
            on("get list patch update watch", "networking.k8s.io", "servicecidrs"),
            on("patch update", "networking.k8s.io", "servicecidrs/finalizers"),
            on("patch update", "networking.k8s.io", "servicecidrs/status"),
            on("get list watch", "networking.k8s.io", "ipaddresses"),
            EVENTS,
        ],
    ),
    (
        "service-controller",
        &[
            on("get list watch", "core", "services"),
            on("patch update", "core", "services/status"),
            on("list watch", "core", "nodes"),
            EVENTS,
        ],
    ),
    (
        "statefulset-controller",
        &[
            on("list watch", "core", "pods"),
            on("get list watch", "apps", "statefulsets"),
            on("update", "apps", "statefulsets/status"),
            on("update", "apps", "statefulsets/finalizers"),
            on("create delete get patch update", "core", "pods"),
            on("create delete get list patch update watch", "apps", "controllerrevisions"),
            on("create get list watch", "core", "persistentvolumeclaims"),
            on("delete update", "core", "persistentvolumeclaims"),
            on("update", "core", "pods/finalizers"),
            EVENTS,
        ],
    ),
    ("ttl-after-finished-controller", &[on("delete get list watch", "batch", "jobs"), EVENTS]),
    ("ttl-controller", &[on("list patch update watch", "core", "nodes"), EVENTS]),
    (
        "validatingadmissionpolicy-status-controller",
        &[
            on("get list watch", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
            on("get patch update", "admissionregistration.k8s.io", "validatingadmissionpolicies/status"),
            EVENTS,
        ],
    ),
    (
        "volumeattributesclass-protection-controller",
        &[
            on("get list watch", "core", "persistentvolumeclaims"),
            on("get list watch", "core", "persistentvolumes"),
            on("get list update watch", "storage.k8s.io", "volumeattributesclasses"),
            EVENTS,
        ],
    ),
];
