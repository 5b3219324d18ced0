//! Claims of devices (`pkg/quota/v1/evaluator/core/resource_claims.go`). Not counted is what extended resources stand for
//! (`requests.deviceclass.resource.kubernetes.io/`).

use std::collections::BTreeMap;

use kubewright_meta::quantity::Quantity;
use serde_json::Value;

use kubewright_meta::resources::Resources;

const CLAIMS: &str = "count/resourceclaims.resource.k8s.io";
/// What follows the name of a class.
const OF_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// As many devices as a claim can have: where it asks for all.
const ALL: i64 = 32;

pub(super) fn matches_name(name: &str) -> bool {
    name == CLAIMS || name.ends_with(OF_CLASS)
}

/// The devices of each class; of alternatives those of the most.
pub(super) fn usage(claim: &Value) -> Resources {
    let requests = claim.pointer("/spec/devices/requests").and_then(Value::as_array);
    let mut devices: BTreeMap<&str, i64> = BTreeMap::new();
    for request in requests.into_iter().flatten() {
        let alternatives = request["firstAvailable"].as_array().map_or(&[][..], Vec::as_slice);
        let mut most: BTreeMap<&str, i64> = BTreeMap::new();
        let exactly = alternatives.is_empty().then_some(&request["exactly"]).filter(|one| one.is_object());
        for wanted in alternatives.iter().chain(exactly) {
            let class = wanted["deviceClassName"].as_str().unwrap_or_default();
            let known = most.entry(class).or_default();
            *known = (*known).max(count(wanted));
        }
        for (class, count) in most {
            let sum = devices.entry(class).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    let mut usage = Resources::default();
    usage.set(CLAIMS, Quantity::count(1));
    for (class, count) in devices {
        usage.set(format!("{class}{OF_CLASS}"), Quantity::count(usize::try_from(count).unwrap_or_default()));
    }
    usage
}

fn count(wanted: &Value) -> i64 {
    match wanted["allocationMode"].as_str() {
        Some("ExactCount") => wanted["count"].as_i64().unwrap_or_default(),
        Some("All") => ALL,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_counts_the_devices_of_each_class() {
        let claim = json!({"spec": {"devices": {"requests": [
            {"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
            {"exactly": {"deviceClassName": "nic", "allocationMode": "All"}},
            {"firstAvailable": [
                {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
                {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3},
            ]},
        ]}}});
        let expected = json!({
            "count/resourceclaims.resource.k8s.io": "1",
            "gpu.deviceclass.resource.k8s.io/devices": "5",
            "nic.deviceclass.resource.k8s.io/devices": "32",
        });
        assert_eq!(usage(&claim).to_value(), expected);
        assert!(matches_name("gpu.deviceclass.resource.k8s.io/devices"));
        assert!(!matches_name("requests.cpu"));
    }
}
