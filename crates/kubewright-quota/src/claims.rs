//! Claims to volumes (`pkg/quota/v1/evaluator/core/persistent_volume_claims.go`).

use std::collections::BTreeSet;

use kubewright_meta::quantity::Quantity;
use serde_json::Value;

use super::scope::{Operator, Requirement};
use kubewright_meta::resources::Resources;

const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
/// What stands between the name of a storage class and that of a resource.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Where the class of a claim stood before there was a field for it.
pub const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn matches_name(name: &str) -> bool {
    let resource = name.split_once(OF_CLASS).map_or(name, |(_, resource)| resource);
    matches!(resource, CLAIMS | STORAGE) || name == "count/persistentvolumeclaims"
}

pub(super) fn usage(claim: &Value) -> Resources {
    let mut usage = Resources::default();
    let class = class_of(claim);
    let mut charge = |name: &str, amount: Quantity| {
        usage.set(name, amount);
        if !class.is_empty() {
            usage.set(format!("{class}{OF_CLASS}{name}"), amount);
        }
    };
    charge(CLAIMS, Quantity::count(1));
    if let Some(storage) = storage(claim) {
        charge(STORAGE, storage);
    }
    usage.set("count/persistentvolumeclaims", Quantity::count(1));
    usage
}

/// The storage class of a claim; empty where it has none.
pub fn class_of(claim: &Value) -> &str {
    let annotated = claim["metadata"]["annotations"][CLASS_ANNOTATION].as_str();
    annotated.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}

/// What it asks for, or already got where that is more, in whole bytes.
fn storage(claim: &Value) -> Option<Quantity> {
    let asked = Quantity::of(&claim["spec"]["resources"]["requests"]["storage"])?;
    let allocated = Quantity::of(&claim["status"]["allocatedResources"]["storage"]);
    Some(allocated.filter(|allocated| *allocated > asked).unwrap_or(asked).rounded_up())
}

pub(super) fn is_in_scope(scope: &Requirement, claim: &Value) -> bool {
    if scope.name != "VolumeAttributesClass" {
        return false;
    }
    let classes = attributes_classes(claim);
    match (scope.operator, classes.is_empty()) {
        (Operator::Exists, none) => !none,
        (_, true) => scope.matches(None),
        (_, false) => classes.into_iter().any(|class| scope.matches(Some(class))),
    }
}

/// The attributes classes that a claim wants, has, or is being changed to.
fn attributes_classes(claim: &Value) -> BTreeSet<&str> {
    let status = &claim["status"];
    let named = [
        &claim["spec"]["volumeAttributesClassName"],
        &status["currentVolumeAttributesClassName"],
        &status["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
    ];
    named.into_iter().filter_map(Value::as_str).filter(|name| !name.is_empty()).collect()
}

/// Whether a change of the status may change what the claim uses.
pub(super) fn is_charged_by_status(next: &Value, old: &Value) -> bool {
    let storage = |claim: &Value| claim["status"]["allocatedResources"]["storage"].clone();
    storage(next) != storage(old) || attributes_classes(next) != attributes_classes(old)
}
