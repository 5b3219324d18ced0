//! Listers: the objects that a decision looks up besides nodes and pods.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetSpec, StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{
    Namespace, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kube::core::{Expression, Selector, SelectorExt};
use kubewright_objects::devices::{DeviceClass, ResourceClaim, ResourceSlice};
use kubewright_runtime::{Context, Key, owner};

use super::pod_info::{Labels, PodInfo, selector};

/// Lists and gets objects that decisions look up.
pub(super) trait Listers {
    fn namespace_labels(&self, name: &str) -> Labels;
    fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>>;
    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>>;
    fn volumes(&self) -> Vec<Arc<PersistentVolume>>;
    fn storage_class(&self, name: &str) -> Option<Arc<StorageClass>>;
    fn csi_node(&self, name: &str) -> Option<Arc<CSINode>>;
    fn budgets(&self) -> Vec<Arc<PodDisruptionBudget>>;
    fn resource_claim(&self, namespace: &str, name: &str) -> Option<Arc<ResourceClaim>>;
    fn resource_claims(&self) -> Vec<Arc<ResourceClaim>>;
    fn resource_slices(&self) -> Vec<Arc<ResourceSlice>>;
    fn device_class(&self, name: &str) -> Option<Arc<DeviceClass>>;
    /// What selects the pods of the same services and the same owner, if there are any (`DefaultSelector` in
    /// `plugins/helper/spread.go`).
    fn of_owner(&self, pod_info: &PodInfo) -> Option<Selector>;
}

impl Listers for Context {
    fn namespace_labels(&self, name: &str) -> Labels {
        let namespace = self.get::<Namespace>(&Key::cluster_scoped(name));
        namespace.and_then(|namespace| namespace.metadata.labels.clone()).unwrap_or_default()
    }

    fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
        self.get(&Key::namespaced(namespace, name))
    }

    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        self.get(&Key::cluster_scoped(name))
    }

    fn volumes(&self) -> Vec<Arc<PersistentVolume>> {
        self.list(None)
    }

    fn storage_class(&self, name: &str) -> Option<Arc<StorageClass>> {
        self.get(&Key::cluster_scoped(name))
    }

    fn csi_node(&self, name: &str) -> Option<Arc<CSINode>> {
        self.get(&Key::cluster_scoped(name))
    }

    fn budgets(&self) -> Vec<Arc<PodDisruptionBudget>> {
        self.list(None)
    }

    fn resource_claim(&self, namespace: &str, name: &str) -> Option<Arc<ResourceClaim>> {
        self.get(&Key::namespaced(namespace, name))
    }

    fn resource_claims(&self) -> Vec<Arc<ResourceClaim>> {
        self.list(None)
    }

    fn resource_slices(&self) -> Vec<Arc<ResourceSlice>> {
        self.list(None)
    }

    fn device_class(&self, name: &str) -> Option<Arc<DeviceClass>> {
        self.get(&Key::cluster_scoped(name))
    }

    fn of_owner(&self, pod_info: &PodInfo) -> Option<Selector> {
        let mut requirements: Vec<Expression> = Vec::new();
        for service in self.list::<Service>(Some(pod_info.namespace())) {
            let of_service = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            let Some(of_service) = of_service.filter(|selector| !selector.is_empty()) else { continue };
            let selector: Selector = of_service.clone().into_iter().collect();
            if selector.matches(&pod_info.class.labels) {
                requirements.extend(selector);
            }
        }
        requirements.extend(self.owners_selector(&pod_info.pod).into_iter().flatten());
        (!requirements.is_empty()).then(|| requirements.into_iter().collect())
    }
}

trait Owners {
    fn owners_selector(&self, pod: &Pod) -> Option<Selector>;
}

impl Owners for Context {
    fn owners_selector(&self, pod: &Pod) -> Option<Selector> {
        let owner = owner::controller_of(&pod.metadata)?;
        let key = Key::namespaced(pod.metadata.namespace.clone()?, &owner.name);
        match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("v1", "ReplicationController") => {
                let selector = self.get::<ReplicationController>(&key)?.spec.as_ref()?.selector.clone()?;
                Some(selector.into_iter().collect())
            }
            ("apps/v1", "ReplicaSet") => {
                let set = self.get::<ReplicaSet>(&key)?;
                let spec: Option<&ReplicaSetSpec> = (&set.spec).into();
                selector(spec.map(|spec| &spec.selector))
            }
            ("apps/v1", "StatefulSet") => {
                let set = self.get::<StatefulSet>(&key)?;
                let spec: Option<&StatefulSetSpec> = (&set.spec).into();
                selector(spec.map(|spec| &spec.selector))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Objects that a test says are there.
    #[derive(Default)]
    pub(crate) struct FakeListers {
        pub(crate) namespaces: BTreeMap<String, Labels>,
        pub(crate) claims: Vec<Arc<PersistentVolumeClaim>>,
        pub(crate) volumes: Vec<Arc<PersistentVolume>>,
        pub(crate) classes: Vec<Arc<StorageClass>>,
        pub(crate) csi_nodes: Vec<Arc<CSINode>>,
        pub(crate) budgets: Vec<Arc<PodDisruptionBudget>>,
        pub(crate) of_owner: Option<Selector>,
        pub(crate) resource_claims: Vec<Arc<ResourceClaim>>,
        pub(crate) resource_slices: Vec<Arc<ResourceSlice>>,
        pub(crate) device_classes: Vec<Arc<DeviceClass>>,
    }

    impl Listers for FakeListers {
        fn namespace_labels(&self, name: &str) -> Labels {
            self.namespaces.get(name).cloned().unwrap_or_default()
        }

        fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
            self.claims.iter().find(|claim| Key::of(&***claim) == Key::namespaced(namespace, name)).cloned()
        }

        fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
            self.volumes.iter().find(|volume| volume.metadata.name.as_deref() == Some(name)).cloned()
        }

        fn volumes(&self) -> Vec<Arc<PersistentVolume>> {
            self.volumes.clone()
        }

        fn storage_class(&self, name: &str) -> Option<Arc<StorageClass>> {
            self.classes.iter().find(|class| class.metadata.name.as_deref() == Some(name)).cloned()
        }

        fn csi_node(&self, name: &str) -> Option<Arc<CSINode>> {
            self.csi_nodes.iter().find(|node| node.metadata.name.as_deref() == Some(name)).cloned()
        }

        fn budgets(&self) -> Vec<Arc<PodDisruptionBudget>> {
            self.budgets.clone()
        }

        fn resource_claim(&self, namespace: &str, name: &str) -> Option<Arc<ResourceClaim>> {
            let key = Key::namespaced(namespace, name);
            self.resource_claims.iter().find(|claim| Key::of(&***claim) == key).cloned()
        }

        fn resource_claims(&self) -> Vec<Arc<ResourceClaim>> {
            self.resource_claims.clone()
        }

        fn resource_slices(&self) -> Vec<Arc<ResourceSlice>> {
            self.resource_slices.clone()
        }

        fn device_class(&self, name: &str) -> Option<Arc<DeviceClass>> {
            self.device_classes.iter().find(|class| class.metadata.name.as_deref() == Some(name)).cloned()
        }

        fn of_owner(&self, _: &PodInfo) -> Option<Selector> {
            self.of_owner.clone()
        }
    }
}
