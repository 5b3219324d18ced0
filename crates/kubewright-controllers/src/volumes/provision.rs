//! Volumes that are made for claims.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ObjectMeta;
use kubewright_meta::well_known::PROVISIONER;
use kubewright_node::storage::{annotation, class_of_claim};
use kubewright_runtime::{Context, Error, Key};

use super::claim::{Acted, reference_to, set_status};
use super::{BOUND_BY_CONTROLLER, PROVISIONED_BY};
use crate::event::NewEvent;

/// Provisioners with this prefix are parts of Kubernetes; none is here.
const OWN_PREFIX: &str = "kubernetes.io/";
/// Tells a provisioner that a claim is its business; by its name and by the older one.
const WANTED_FROM: [&str; 2] =
    ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];

/// Makes a volume for the claim, or asks the provisioner of the class for one.
///
/// # Errors
/// When a write fails.
pub(super) async fn provision(
    ctx: &Context,
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
) -> Result<Acted, Error> {
    let provisioner = class.provisioner.as_str();
    if provisioner.starts_with(OWN_PREFIX) {
        let note = format!("no volume plugin matched name: {provisioner}");
        NewEvent::warning("ProvisioningFailed", note).record(ctx, claim);
        return Ok(Acted::Settled);
    }
    let claim = match wanted_from(claim, provisioner) {
        Some(changed) => ctx.update(&changed).await?,
        None => claim.clone(),
    };
    if provisioner != PROVISIONER {
        let note = format!(
            "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
        );
        NewEvent::normal("ExternalProvisioning", note).record(ctx, &claim);
        return Ok(Acted::Settled);
    }
    let volume = volume(&claim, class);
    let name = volume.metadata.name.clone().unwrap_or_default();
    let mut acted = Acted::Settled;
    if ctx.get::<PersistentVolume>(&Key::cluster_scoped(name.clone())).is_none() {
        match ctx.create(&volume).await {
            Err(error) if error.is_already_exists() => {}
            created => {
                created?;
                acted = Acted::Advanced;
                let note = format!("Successfully provisioned volume {name} using {PROVISIONER}");
                NewEvent::normal("ProvisioningSucceeded", note).record(ctx, &claim);
            }
        }
    }
    set_status(ctx, &claim, "Pending", None).await?;
    Ok(acted)
}

/// The claim with the annotations that name its provisioner, if it lacks them.
fn wanted_from(claim: &PersistentVolumeClaim, provisioner: &str) -> Option<PersistentVolumeClaim> {
    if WANTED_FROM.iter().all(|name| annotation(&claim.metadata, name) == Some(provisioner)) {
        return None;
    }
    let mut changed = claim.clone();
    let annotations = changed.metadata.annotations.get_or_insert_default();
    annotations.extend(WANTED_FROM.map(|name| (name.to_owned(), provisioner.to_owned())));
    Some(changed)
}

/// A volume of just the size that the claim asks for, reserved for it.
fn volume(claim: &PersistentVolumeClaim, class: &StorageClass) -> PersistentVolume {
    let spec = claim.spec.clone().unwrap_or_default();
    let uid = claim.metadata.uid.clone().unwrap_or_default();
    let name = format!("pvc-{uid}");
    let requests = spec.resources.and_then(|resources| resources.requests);
    let annotations = [
        (BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned()),
        (PROVISIONED_BY.to_owned(), PROVISIONER.to_owned()),
    ];
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            annotations: Some(BTreeMap::from(annotations)),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: requests,
            claim_ref: Some(reference_to(claim)),
            csi: Some(CSIPersistentVolumeSource {
                driver: PROVISIONER.to_owned(),
                volume_handle: name,
                ..CSIPersistentVolumeSource::default()
            }),
            mount_options: class.mount_options.clone(),
            persistent_volume_reclaim_policy: Some(
                class.reclaim_policy.clone().unwrap_or_else(|| "Delete".into()),
            ),
            storage_class_name: Some(class_of_claim(claim).to_owned()),
            volume_attributes_class_name: spec.volume_attributes_class_name,
            volume_mode: spec.volume_mode,
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_simulated_volume_is_made_to_measure_and_reserved() {
        let claim: PersistentVolumeClaim = kubewright_objects::from_value(json!({
            "metadata": {"name": "data", "namespace": "ns", "uid": "u"},
            "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "volumeMode": "Block",
                "resources": {"requests": {"storage": "3Gi"}}}}))
        .expect("a claim");
        let class: StorageClass =
            kubewright_objects::from_value(json!({"metadata": {"name": "fast"}, "provisioner": PROVISIONER}))
                .expect("a class");
        let made = json!(volume(&claim, &class));
        assert_eq!(made["metadata"]["name"], "pvc-u");
        assert_eq!(made["spec"]["claimRef"]["uid"], "u");
        assert_eq!(made["spec"]["capacity"], json!({"storage": "3Gi"}));
        assert_eq!(made["spec"]["persistentVolumeReclaimPolicy"], "Delete");
        assert_eq!(made["spec"]["storageClassName"], "fast");
        assert_eq!(made["spec"]["volumeMode"], "Block");
    }

    #[test]
    fn a_claim_is_told_its_provisioner_once() {
        let claim = PersistentVolumeClaim::default();
        let event = wanted_from(&claim, "disk.example.com").expect("annotations");
        assert_eq!(wanted_from(&event, "disk.example.com"), None);
        assert!(wanted_from(&event, "other.example.com").is_some());
    }
}
