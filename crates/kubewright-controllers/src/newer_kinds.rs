//! Kinds that k8s-openapi does not have in every version that this is built with, as far as controllers look at them.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::Resource;
use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident, $scope:ty, $group:literal, $plural:literal, $spec:ty, $status:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub(crate) struct $kind {
            api_version: Cow<'static, str>,
            kind: Cow<'static, str>,
            pub(crate) metadata: ObjectMeta,
            pub(crate) spec: $spec,
            pub(crate) status: $status,
        }

        impl Default for $kind {
            fn default() -> Self {
                Self {
                    api_version: concat!($group, "/v1").into(),
                    kind: stringify!($kind).into(),
                    metadata: ObjectMeta::default(),
                    spec: Default::default(),
                    status: Default::default(),
                }
            }
        }

        impl Resource for $kind {
            type DynamicType = ();
            type Scope = $scope;

            fn kind(&(): &()) -> Cow<'_, str> {
                stringify!($kind).into()
            }

            fn group(&(): &()) -> Cow<'_, str> {
                $group.into()
            }

            fn version(&(): &()) -> Cow<'_, str> {
                "v1".into()
            }

            fn plural(&(): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    )*};
}

kinds! {
    /// A resource whose objects are to be stored in its storage version.
    StorageVersionMigration, ClusterResourceScope,
        "storagemigration.k8s.io", "storageversionmigrations", MigrationSpec, MigrationStatus;
    /// Whom a signer trusts, or nobody in particular.
    ClusterTrustBundle, ClusterResourceScope,
        "certificates.k8s.io", "clustertrustbundles", BundleSpec, Nothing;
    /// A kubelet's request for a certificate of a pod.
    PodCertificateRequest, NamespaceResourceScope,
        "certificates.k8s.io", "podcertificaterequests", Nothing, Nothing;
}

/// What is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Nothing {}

/// The spec of a [`StorageVersionMigration`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MigrationSpec {
    pub(crate) resource: GroupResource,
}

/// A resource of a group, whatever its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct GroupResource {
    pub(crate) group: String,
    pub(crate) resource: String,
}

/// The status of a [`StorageVersionMigration`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct MigrationStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) resource_version: String,
}

/// The spec of a [`ClusterTrustBundle`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct BundleSpec {
    pub(crate) signer_name: String,
    pub(crate) trust_bundle: String,
}
