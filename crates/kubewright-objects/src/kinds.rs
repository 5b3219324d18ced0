//! The built-in kinds whose code is compiled in this crate, for all crates above it.

use std::{hint::black_box, sync::Arc};

use k8s_openapi::{
    api::{
        admissionregistration::v1::{
            MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
            ValidatingWebhookConfiguration,
        },
        apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet},
        authentication::v1::TokenReview,
        authorization::v1::SubjectAccessReview,
        autoscaling::v2::HorizontalPodAutoscaler,
        batch::v1::{CronJob, Job},
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        core::v1::{
            ConfigMap, Endpoints, Event, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod,
            ReplicationController, ResourceQuota, Secret, Service, ServiceAccount,
        },
        discovery::v1::EndpointSlice,
        networking::v1::{IPAddress, ServiceCIDR},
        policy::v1::PodDisruptionBudget,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
        storage::v1::{CSINode, StorageClass},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    serde::{Serialize, de::DeserializeOwned},
};
use kube::core::ObjectList;
use serde_json::Value;

use crate::{
    AnyObject, Cached, decode,
    devices::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice},
    erase, from_json,
    json::by_text,
    to_json, to_value, typed,
};

macro_rules! kinds {
    ($($kind:ty),* $(,)?) => {
        /// The kinds. What an entry does is nothing: that it names a function for a type has the compiler make it.
        pub static KINDS: &[fn()] = &[$(compile::<$kind>),*];
    };
}

kinds![
    CSINode,
    CertificateSigningRequest,
    ClusterRole,
    ClusterRoleBinding,
    ConfigMap,
    ControllerRevision,
    CronJob,
    CustomResourceDefinition,
    DaemonSet,
    Deployment,
    DeviceClass,
    EndpointSlice,
    Endpoints,
    Event,
    HorizontalPodAutoscaler,
    IPAddress,
    Job,
    Lease,
    MutatingWebhookConfiguration,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceQuota,
    ResourceSlice,
    Role,
    RoleBinding,
    Secret,
    Service,
    ServiceAccount,
    ServiceCIDR,
    StatefulSet,
    StorageClass,
    SubjectAccessReview,
    TokenReview,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
];

/// What `#[derive(CustomResource)]` calls to make its definition, which is not ours to change.
pub static DERIVED: fn(Value) -> serde_json::Result<CustomResourceDefinition> = serde_json::from_value;

/// Names the functions of a kind that are compiled here.
fn compile<K: Cached>() {
    black_box(decode::<K> as fn(&str, _) -> _);
    black_box(erase::<K> as fn(K, _) -> _);
    black_box(typed::<K> as fn(Arc<dyn AnyObject>) -> _);
    black_box(drop::<Arc<K>> as fn(_));
    black_box(read_and_written::<K> as fn());
    black_box(from_json::<ObjectList<K>> as fn(&str) -> _);
}

/// As [`compile`], of what is no object of its own, too.
fn read_and_written<K: Serialize + DeserializeOwned>() {
    black_box(from_json::<K> as fn(&str) -> _);
    black_box(by_text::<K> as fn(&_) -> _);
    black_box(to_json::<K> as fn(&K) -> _);
    black_box(to_value::<K> as fn(&K) -> _);
}
