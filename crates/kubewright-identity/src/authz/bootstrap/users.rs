//! The cluster roles for people, for everybody, and the parts that `view`, `edit` and `admin` are aggregated from.
//! Facts of Kubernetes v1.36 (`bootstrappolicy/policy.go`).

use super::{RoleFacts, at, on};

pub(super) const USERS: &[RoleFacts] = &[
    (
        "system:aggregate-to-admin",
        &[
            on("create", "authorization.k8s.io", "localsubjectaccessreviews"),
            on(
                "create delete deletecollection get list patch update watch",
                "rbac.authorization.k8s.io",
                "rolebindings roles",
            ),
        ],
    ),
    (
        "system:aggregate-to-edit",
        &[
            on(
                "get list watch",
                "core",
                "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy",
            ),
            on("impersonate", "core", "serviceaccounts"),
            on(
                "create delete deletecollection patch update",
                "core",
                "pods pods/attach pods/exec pods/portforward pods/proxy",
            ),
            on("create", "core", "pods/eviction"),
            on(
                "create delete deletecollection patch update",
                "core",
                "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy",
            ),
            on("create", "core", "serviceaccounts/token"),
            on("create delete deletecollection patch update", "core events.k8s.io", "events"),
            on(
                "create delete deletecollection patch update",
                "apps",
                "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale",
            ),
            on("create delete deletecollection patch update", "autoscaling", "horizontalpodautoscalers"),
            on("create delete deletecollection patch update", "batch", "cronjobs jobs"),
            on(
                "create delete deletecollection patch update",
                "extensions",
                "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets replicasets/scale replicationcontrollers/scale",
            ),
            on("create delete deletecollection patch update", "policy", "poddisruptionbudgets"),
            on(
                "create delete deletecollection patch update",
                "networking.k8s.io",
                "ingresses networkpolicies",
            ),
            on("create delete deletecollection get list patch update watch", "coordination.k8s.io", "leases"),
            on(
                "create delete deletecollection patch update",
                "resource.k8s.io",
                "resourceclaims resourceclaimtemplates",
            ),
        ],
    ),
    (
        "system:aggregate-to-view",
        &[
            on(
                "get list watch",
                "core",
                "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
            ),
            on(
                "get list watch",
                "core",
                "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas resourcequotas/status",
            ),
            on("get list watch", "core", "namespaces"),
            on("get list watch", "core events.k8s.io", "events"),
            on("get list watch", "discovery.k8s.io", "endpointslices"),
            on(
                "get list watch",
                "apps",
                "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
            ),
            on("get list watch", "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
            on("get list watch", "batch", "cronjobs cronjobs/status jobs jobs/status"),
            on(
                "get list watch",
                "extensions",
                "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale",
            ),
            on("get list watch", "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
            on("get list watch", "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
            on(
                "get list watch",
                "resource.k8s.io",
                "resourceclaims resourceclaims/status resourceclaimtemplates",
            ),
        ],
    ),
    ("cluster-admin", &[on("*", "*", "*"), at("*", "*")]),
    (
        "system:auth-delegator",
        &[
            on("create", "authentication.k8s.io", "tokenreviews"),
            on("create", "authorization.k8s.io", "subjectaccessreviews"),
        ],
    ),
    (
        "system:basic-user",
        &[
            on("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
            on("create", "authentication.k8s.io", "selfsubjectreviews"),
        ],
    ),
    (
        "system:discovery",
        &[at(
            "get",
            "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/",
        )],
    ),
    (
        "system:monitoring",
        &[
            at(
                "get",
                "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz",
            ),
            on("get", "core", "nodes/metrics"),
        ],
    ),
    ("system:public-info-viewer", &[at("get", "/healthz /livez /readyz /version /version/")]),
    (
        "system:service-account-issuer-discovery",
        &[at(
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
        )],
    ),
];
