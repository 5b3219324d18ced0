//! PersistentVolumeClaims.

use crate::cause::Cause;
use crate::causes::{Around, scheduling};
use crate::object::{Id, Object};
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{event_line, one_line};

/// What marks the class that is taken where none is named.
const DEFAULT: &str = "/metadata/annotations/storageclass.kubernetes.io~1is-default-class";

pub(super) fn find(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object: claim, .. } = *around;
    let phase = claim.text("/status/phase");
    if claim.is_deleting() || phase == "Bound" {
        return Vec::new();
    }
    let volume = claim.text("/spec/volumeName");
    if phase == "Lost"
        || !volume.is_empty() && picture.is_absent(&Id::new("", "PersistentVolume", "", volume))
    {
        let message = format!("its volume {volume} does not exist");
        return vec![Finding::new(
            Cause::VolumeMissing,
            message,
            "restore the PersistentVolume, or delete the claim: its data are gone",
        )];
    }
    let event = picture.event(
        claim,
        &["ProvisioningFailed", "ExternalProvisioning", "FailedBinding", "WaitForFirstConsumer"],
    );
    vec![unbound(around, claim.text("/spec/storageClassName")).all(event.map(event_line))]
}

fn unbound(around: &Around<'_>, class: &str) -> Finding {
    let Around { picture, object: claim, .. } = *around;
    if class.is_empty() {
        let has_default =
            picture.all("storage.k8s.io", "StorageClass").any(|one| one.text(DEFAULT) == "true");
        let message = if claim.has("/spec/storageClassName") || has_default {
            "it names no storage class, and no volume fits it"
        } else {
            "it names no storage class, there is no default one, and no volume fits it"
        };
        let next = "name a class in spec.storageClassName (kubectl get storageclasses), or create a PersistentVolume that fits";
        return Finding::new(Cause::ClaimNoClass, message, next);
    }
    let Some(object) = picture.get("storage.k8s.io", "StorageClass", "", class) else {
        let names: Vec<&str> = picture.all("storage.k8s.io", "StorageClass").map(Object::name).collect();
        let there = if names.is_empty() {
            "there are none".to_owned()
        } else {
            format!("there are: {}", names.join(", "))
        };
        let message = format!("storage class {class:?} does not exist; {there}");
        return Finding::new(
            Cause::ClassMissing,
            message,
            "create the class, or name another: a claim's class is changed by making the claim anew",
        );
    };
    if scheduling::waits_for_consumer(picture, claim) && !has_user(picture, claim) {
        let message = format!("it waits for a pod that uses it: class {class} binds with the first consumer");
        return Finding::new(
            Cause::FirstConsumer,
            message,
            "create the pod: nothing is wrong with the claim",
        );
    }
    let provisioner = object.text("/provisioner");
    let said = picture.event(claim, &["ProvisioningFailed"]).map(|event| one_line(event.text("/message")));
    let said = said.map_or_else(|| "it has not made one yet".to_owned(), |said| format!("it says: {said}"));
    let message = format!("provisioner {provisioner} of class {class} has to make its volume: {said}");
    Finding::new(Cause::NoProvisioner, message, format!("is the driver {provisioner} installed and running?"))
}

fn has_user(picture: &Picture, claim: &Object) -> bool {
    let pods = picture.within("", "Pod", claim.namespace());
    pods.into_iter().any(|pod| scheduling::claim_names(pod).iter().any(|name| name == claim.name()))
}

/// The claims of a pod.
pub(super) fn of_pod<'a>(picture: &'a Picture, pod: &'a Object) -> Vec<&'a Object> {
    let names = scheduling::claim_names(pod);
    picture
        .within("", "PersistentVolumeClaim", pod.namespace())
        .filter(|one| names.iter().any(|name| name == one.name()))
        .filter(|one| !pod.text("/spec/nodeName").is_empty() || !scheduling::waits_for_consumer(picture, one))
        .collect()
}
