//! What the claims of a pod lack (`pkg/controller/statefulset/stateful_pod_control.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};

use super::{member, retention};

/// The writes that make the claims of a pod what they should be, and what stands in the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Storage {
    /// Claims to create.
    pub(super) missing: Vec<PersistentVolumeClaim>,
    /// The names of claims that are being deleted: a pod cannot have these.
    pub(super) going: Vec<String>,
    /// Claims as they are, but for their owners.
    pub(super) owners: Vec<PersistentVolumeClaim>,
    /// The names of claims that somebody else controls.
    pub(super) foreign: Vec<String>,
}

impl Storage {
    /// What the claims of `pod` lack, given the `claims` of its namespace.
    pub(super) fn of(
        set: &StatefulSet,
        pod: &Pod,
        claims: &BTreeMap<String, Arc<PersistentVolumeClaim>>,
    ) -> Self {
        let mut storage = Self::default();
        for wanted in member::claims(set, pod).into_values() {
            let name = wanted.metadata.name.clone().unwrap_or_default();
            let Some(claim) = claims.get(&name) else {
                storage.missing.push(wanted);
                continue;
            };
            storage.owners.extend(retention::corrected(set, pod, claim));
            if retention::has_foreign_controller(set, pod, claim) {
                storage.foreign.push(name.clone());
            }
            if claim.metadata.deletion_timestamp.is_some() {
                storage.going.push(name);
            }
        }
        storage
    }

    /// Whether there is nothing to write and nothing in the way.
    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.going.is_empty() && self.owners.is_empty()
    }

    /// Only what concerns the owners.
    pub(super) fn without_claims(self) -> Self {
        Self { missing: Vec::new(), going: Vec::new(), ..self }
    }
}
