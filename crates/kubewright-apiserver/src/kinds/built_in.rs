//! The table of built-in kinds: those of Kubernetes v1.36, in the order of its discovery.
//!
//! Not served: `componentstatuses` (deprecated), `apiregistration.k8s.io` and `resource.k8s.io`.

use k8s_openapi::api::{
    admissionregistration, apps, authentication, authorization, autoscaling, batch, certificates,
    coordination, core, discovery, events, flowcontrol, networking, node, policy, rbac, scheduling, storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;

use super::kind::Subresource::{
    Approval, Attach, Binding, EphemeralContainers, Eviction, Exec, Finalize, Log, PortForward, Proxy,
    Resize, Scale, Status, Token,
};
use super::kind::{BuiltIn, built_in};

/// Every built-in kind.
pub fn table() -> Vec<BuiltIn> {
    vec![
        built_in::<core::v1::Binding>().create_only(),
        built_in::<core::v1::ConfigMap>().short(&["cm"]),
        built_in::<core::v1::Endpoints>().short(&["ep"]),
        built_in::<core::v1::Event>().short(&["ev"]),
        built_in::<core::v1::LimitRange>().short(&["limits"]),
        built_in::<core::v1::Namespace>()
            .without_delete_collection()
            .short(&["ns"])
            .with(&[Finalize, Status]),
        built_in::<core::v1::Node>().short(&["no"]).with(&[Proxy("NodeProxyOptions"), Status]),
        built_in::<core::v1::PersistentVolumeClaim>().short(&["pvc"]).with(&[Status]),
        built_in::<core::v1::PersistentVolume>().short(&["pv"]).with(&[Status]),
        built_in::<core::v1::Pod>().short(&["po"]).category("all").with(&[
            Attach,
            Binding,
            EphemeralContainers,
            Eviction,
            Exec,
            Log,
            PortForward,
            Proxy("PodProxyOptions"),
            Resize,
            Status,
        ]),
        built_in::<core::v1::PodTemplate>(),
        built_in::<core::v1::ReplicationController>().short(&["rc"]).category("all").with(&[Scale, Status]),
        built_in::<core::v1::ResourceQuota>().short(&["quota"]).with(&[Status]),
        built_in::<core::v1::Secret>(),
        built_in::<core::v1::ServiceAccount>().short(&["sa"]).with(&[Token]),
        built_in::<core::v1::Service>()
            .short(&["svc"])
            .category("all")
            .with(&[Proxy("ServiceProxyOptions"), Status]),
        built_in::<apps::v1::ControllerRevision>(),
        built_in::<apps::v1::DaemonSet>().short(&["ds"]).category("all").with(&[Status]),
        built_in::<apps::v1::Deployment>().short(&["deploy"]).category("all").with(&[Scale, Status]),
        built_in::<apps::v1::ReplicaSet>().short(&["rs"]).category("all").with(&[Scale, Status]),
        built_in::<apps::v1::StatefulSet>().short(&["sts"]).category("all").with(&[Scale, Status]),
        built_in::<events::v1::Event>().short(&["ev"]),
        built_in::<authentication::v1::SelfSubjectReview>().create_only(),
        built_in::<authentication::v1::TokenReview>().create_only(),
        built_in::<authorization::v1::LocalSubjectAccessReview>().create_only(),
        built_in::<authorization::v1::SelfSubjectAccessReview>().create_only(),
        built_in::<authorization::v1::SelfSubjectRulesReview>().create_only(),
        built_in::<authorization::v1::SubjectAccessReview>().create_only(),
        built_in::<autoscaling::v2::HorizontalPodAutoscaler>()
            .short(&["hpa"])
            .category("all")
            .with(&[Status]),
        built_in::<autoscaling::v1::HorizontalPodAutoscaler>()
            .short(&["hpa"])
            .category("all")
            .with(&[Status]),
        built_in::<batch::v1::CronJob>().short(&["cj"]).category("all").with(&[Status]),
        built_in::<batch::v1::Job>().category("all").with(&[Status]),
        built_in::<certificates::v1::CertificateSigningRequest>().short(&["csr"]).with(&[Approval, Status]),
        built_in::<networking::v1::IngressClass>(),
        built_in::<networking::v1::Ingress>().short(&["ing"]).with(&[Status]),
        built_in::<networking::v1::IPAddress>().short(&["ip"]),
        built_in::<networking::v1::NetworkPolicy>().short(&["netpol"]),
        built_in::<networking::v1::ServiceCIDR>().with(&[Status]),
        built_in::<policy::v1::PodDisruptionBudget>().short(&["pdb"]).with(&[Status]),
        built_in::<rbac::v1::ClusterRoleBinding>(),
        built_in::<rbac::v1::ClusterRole>(),
        built_in::<rbac::v1::RoleBinding>(),
        built_in::<rbac::v1::Role>(),
        built_in::<storage::v1::CSIDriver>(),
        built_in::<storage::v1::CSINode>(),
        built_in::<storage::v1::CSIStorageCapacity>(),
        built_in::<storage::v1::StorageClass>().short(&["sc"]),
        built_in::<storage::v1::VolumeAttachment>().with(&[Status]),
        built_in::<storage::v1::VolumeAttributesClass>().short(&["vac"]),
        built_in::<admissionregistration::v1::MutatingAdmissionPolicy>().category("api-extensions"),
        built_in::<admissionregistration::v1::MutatingAdmissionPolicyBinding>().category("api-extensions"),
        built_in::<admissionregistration::v1::MutatingWebhookConfiguration>().category("api-extensions"),
        built_in::<admissionregistration::v1::ValidatingAdmissionPolicy>()
            .category("api-extensions")
            .with(&[Status]),
        built_in::<admissionregistration::v1::ValidatingAdmissionPolicyBinding>().category("api-extensions"),
        built_in::<admissionregistration::v1::ValidatingWebhookConfiguration>().category("api-extensions"),
        built_in::<apiextensions::v1::CustomResourceDefinition>()
            .short(&["crd", "crds"])
            .category("api-extensions")
            .with(&[Status]),
        built_in::<scheduling::v1::PriorityClass>().short(&["pc"]),
        built_in::<coordination::v1::Lease>(),
        built_in::<node::v1::RuntimeClass>(),
        built_in::<discovery::v1::EndpointSlice>(),
        built_in::<flowcontrol::v1::FlowSchema>().with(&[Status]),
        built_in::<flowcontrol::v1::PriorityLevelConfiguration>().with(&[Status]),
    ]
}
