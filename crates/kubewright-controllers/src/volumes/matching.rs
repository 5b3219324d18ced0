//! Which volume a claim gets (`pkg/controller/volume/persistentvolume/index.go`).

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_node::storage::{
    access_modes, annotation, attributes_differ, class_of_claim, class_of_volume, has_access_modes,
    is_bound_to, is_free_for, modes_differ, requested, selector_of, size, suits,
};

/// Whether there is such an annotation.
pub(super) fn has_annotation(meta: &ObjectMeta, name: &str) -> bool {
    annotation(meta, name).is_some()
}

/// Why a volume that a claim asks for by name is not for it (`checkVolumeSatisfyClaim`).
pub(super) fn objection(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<String> {
    if volume.metadata.deletion_timestamp.is_some() {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        return Some(format!("the volume is marked for deletion {name:?}"));
    }
    let why = if size(volume) < requested(claim) {
        "requested PV is too small"
    } else if class_of_volume(volume) != class_of_claim(claim) {
        "storageClassName does not match"
    } else if attributes_differ(volume, claim) {
        "volumeAttributesClassName does not match"
    } else if modes_differ(volume, claim) {
        "incompatible volumeMode"
    } else if !has_access_modes(volume, claim) {
        "incompatible accessMode"
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// The best volume for a claim: one that is reserved for it, else the smallest free one that is large enough, of those
/// with the fewest access modes beyond the wanted. When somebody else places it (`reserved_only`), only the first.
pub(super) fn best(
    claim: &PersistentVolumeClaim,
    volumes: &[Arc<PersistentVolume>],
    reserved_only: bool,
) -> Option<Arc<PersistentVolume>> {
    let Ok(selector) = selector_of(claim) else { return None };
    let suiting: Vec<_> = volumes.iter().filter(|volume| suits(volume, claim)).collect();
    if let Some(reserved) = suiting.iter().find(|volume| is_bound_to(volume, claim)) {
        return Some(Arc::clone(reserved));
    }
    let free =
        suiting.into_iter().filter(|volume| !reserved_only && is_free_for(volume, claim, selector.as_ref()));
    free.min_by_key(|volume| (access_modes(volume).len(), size(volume))).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn volume(name: &str, storage: &str, modes: &[&str], spec: &Value) -> Arc<PersistentVolume> {
        let mut volume = json!({"metadata": {"name": name, "labels": {"disk": name}},
            "spec": {"capacity": {"storage": storage}, "accessModes": modes},
            "status": {"phase": "Available"}});
        for (key, value) in spec.as_object().into_iter().flatten() {
            volume["spec"][key] = value.clone();
        }
        Arc::new(kubewright_objects::from_value(volume).expect("a volume"))
    }

    fn claim(spec: &Value) -> PersistentVolumeClaim {
        let mut claim = json!({"metadata": {"name": "data", "namespace": "ns", "uid": "u"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}});
        for (key, value) in spec.as_object().into_iter().flatten() {
            claim["spec"][key] = value.clone();
        }
        kubewright_objects::from_value(claim).expect("a claim")
    }

    fn found(claim: &PersistentVolumeClaim, volumes: &[Arc<PersistentVolume>]) -> Option<String> {
        best(claim, volumes, false).and_then(|volume| volume.metadata.name.clone())
    }

    const RWO: &[&str] = &["ReadWriteOnce"];

    #[test]
    fn the_smallest_that_is_large_enough_is_taken() {
        let none = json!({});
        let volumes = [
            volume("large", "10Gi", RWO, &none),
            volume("small", "1Gi", RWO, &none),
            volume("middle", "5G", RWO, &none),
        ];
        assert_eq!(found(&claim(&none), &volumes).as_deref(), Some("middle"));
        let huge = json!({"resources": {"requests": {"storage": "100Gi"}}});
        assert_eq!(found(&claim(&huge), &volumes), None);
    }

    #[test]
    fn one_that_can_do_no_more_than_is_asked_for_comes_before_a_smaller_one_that_can() {
        let none = json!({});
        let volumes = [
            volume("shared", "2Gi", &["ReadWriteOnce", "ReadWriteMany"], &none),
            volume("single", "9Gi", RWO, &none),
        ];
        assert_eq!(found(&claim(&none), &volumes).as_deref(), Some("single"));
        let many = json!({"accessModes": ["ReadWriteMany"]});
        assert_eq!(found(&claim(&many), &volumes).as_deref(), Some("shared"));
    }

    #[test]
    fn what_is_reserved_for_the_claim_comes_first_and_what_is_for_others_never() {
        let mine = json!({"claimRef": {"namespace": "ns", "name": "data"}});
        let theirs = json!({"claimRef": {"namespace": "ns", "name": "data", "uid": "another"}});
        let volumes = [
            volume("free", "2Gi", RWO, &json!({})),
            volume("theirs", "3Gi", RWO, &theirs),
            volume("mine", "9Gi", RWO, &mine),
        ];
        assert_eq!(found(&claim(&json!({})), &volumes).as_deref(), Some("mine"));
        assert_eq!(found(&claim(&json!({})), &volumes[1..2]), None);
        assert!(best(&claim(&json!({})), &volumes[..2], true).is_none(), "who places it reserves it");
        assert!(best(&claim(&json!({})), &volumes, true).is_some());
    }

    #[test]
    fn class_mode_and_selector_have_to_agree() {
        let volumes = [
            volume("fast", "2Gi", RWO, &json!({"storageClassName": "fast"})),
            volume("block", "2Gi", RWO, &json!({"volumeMode": "Block"})),
            volume("plain", "2Gi", RWO, &json!({})),
        ];
        let with = |spec: Value| found(&claim(&spec), &volumes);
        assert_eq!(with(json!({"storageClassName": "fast"})).as_deref(), Some("fast"));
        assert_eq!(with(json!({"volumeMode": "Block"})).as_deref(), Some("block"));
        assert_eq!(with(json!({"selector": {"matchLabels": {"disk": "plain"}}})).as_deref(), Some("plain"));
        assert_eq!(with(json!({"selector": {"matchLabels": {"disk": "fast"}}})), None);
    }

    #[test]
    fn a_volume_asked_for_by_name_is_refused_with_the_reason() {
        let why = |spec: &Value| objection(&volume("v", "1Gi", RWO, &json!({})), &claim(spec));
        let small = json!({"resources": {"requests": {"storage": "1Gi"}}});
        assert_eq!(why(&small), None);
        assert_eq!(why(&json!({})).as_deref(), Some("requested PV is too small"));
        let mut other = small.clone();
        other["storageClassName"] = json!("fast");
        assert_eq!(why(&other).as_deref(), Some("storageClassName does not match"));
        let mut many = small;
        many["accessModes"] = json!(["ReadWriteMany"]);
        assert_eq!(why(&many).as_deref(), Some("incompatible accessMode"));
    }
}
