//! The kinds of `resource.k8s.io/v1`, which k8s-openapi has from `v1_34` on: metadata, and the rest as JSON. So what acts compiles with
//! whichever version a program has chosen.

use std::borrow::Cow;

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::Value;

macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident, $plural:literal, $scope:ty;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $kind {
            /// The standard metadata.
            #[serde(default)]
            pub metadata: ObjectMeta,
            /// What is wanted, or what there is.
            #[serde(default, skip_serializing_if = "Value::is_null")]
            pub spec: Value,
            /// What came of it; null where there is nothing.
            #[serde(default, skip_serializing_if = "Value::is_null")]
            pub status: Value,
        }

        impl Resource for $kind {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                stringify!($kind).into()
            }

            fn group((): &()) -> Cow<'_, str> {
                "resource.k8s.io".into()
            }

            fn version((): &()) -> Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> Cow<'_, str> {
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
    /// A class of devices.
    DeviceClass, "deviceclasses", ClusterResourceScope;
    /// A claim of devices.
    ResourceClaim, "resourceclaims", NamespaceResourceScope;
    /// What claims of devices are made of.
    ResourceClaimTemplate, "resourceclaimtemplates", NamespaceResourceScope;
    /// Devices of a pool.
    ResourceSlice, "resourceslices", ClusterResourceScope;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_is_read_and_written_as_it_is() {
        let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": []}}});
        let read: ResourceClaim = crate::from_value(&claim).expect("a claim");
        assert_eq!(read.spec["devices"]["requests"], json!([]));
        assert_eq!(crate::to_value(&read).expect("JSON"), claim);
    }
}
