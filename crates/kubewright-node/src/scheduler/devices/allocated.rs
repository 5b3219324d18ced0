//! What is allocated already (`allocateddevices.go` in `plugins/dynamicresources`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubewright_meta::quantity::Quantity;
use kubewright_objects::devices::ResourceClaim;
use serde_json::Value;

use super::pools::DeviceId;

/// The devices that are somebody's, and how much is used of those that claims share.
#[derive(Debug, Default)]
pub(super) struct Allocated {
    devices: BTreeSet<[String; 3]>,
    shared: BTreeMap<[String; 3], BTreeMap<String, Quantity>>,
}

impl Allocated {
    /// What these claims have. What an administrator looks at is not taken from anybody.
    pub(super) fn of(claims: &[Arc<ResourceClaim>]) -> Self {
        let mut all = Self::default();
        let results = claims.iter().flat_map(|claim| {
            claim
                .status
                .pointer("/allocation/devices/results")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        });
        for result in results.filter(|result| result["adminAccess"] != true) {
            let id = ["driver", "pool", "device"]
                .map(|field| result[field].as_str().unwrap_or_default().to_owned());
            if result["shareID"].is_null() {
                all.devices.insert(id);
                continue;
            }
            let used = all.shared.entry(id).or_default();
            for (name, amount) in result["consumedCapacity"].as_object().into_iter().flatten() {
                if let Some(amount) = Quantity::of(amount) {
                    let sum = used.entry(name.clone()).or_insert(Quantity::ZERO);
                    *sum = *sum + amount;
                }
            }
        }
        all
    }

    /// Whether a device is one claim's.
    pub(super) fn is_taken(&self, id: &DeviceId<'_>) -> bool {
        self.devices.contains(&id.map(str::to_owned))
    }

    /// How much is used of a device that claims share; nothing of one that none has.
    pub(super) fn shared(&self, id: &DeviceId<'_>) -> Option<&BTreeMap<String, Quantity>> {
        self.shared.get(&id.map(str::to_owned))
    }

    /// Whether any claim has a device or a share of it.
    pub(super) fn has(&self, id: &DeviceId<'_>) -> bool {
        self.is_taken(id) || self.shared(id).is_some()
    }
}
