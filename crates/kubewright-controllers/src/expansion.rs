//! Claims that ask for more than they have (`pkg/controller/volume/expand/expand_controller.go`). A simulated volume grows
//! here, as the resizer beside a CSI driver lets it grow; others are for those who made them.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright_meta::quantity::billionths;
use kubewright_meta::well_known::PROVISIONER;
use kubewright_node::storage::annotation;
use kubewright_runtime::{Context, Controller, Error, EventType, Key, Outcome, Reconciler};
use serde_json::json;

use crate::volumes::PROVISIONED_BY;

/// The controller.
pub(crate) fn controller() -> Controller {
    Controller::new("volume_expand", Growth).for_kind::<PersistentVolumeClaim>().reads::<PersistentVolume>()
}

struct Growth;

/// What is to be done about a claim that is bound to a volume.
#[derive(Debug, PartialEq)]
enum Step<'a> {
    Nothing,
    /// Somebody else has to do it.
    Wait,
    /// The volume is to have this size, and then the claim has it.
    Grow(&'a Quantity),
}

impl Reconciler for Growth {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(claim) = ctx.get::<PersistentVolumeClaim>(key) else { return Ok(Outcome::Done) };
        let name = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref());
        let volume = name.and_then(|name| ctx.get::<PersistentVolume>(&Key::cluster_scoped(name)));
        let Some(volume) = volume else { return Ok(Outcome::Done) };
        match plan(&claim, &volume) {
            Step::Nothing => {}
            Step::Wait => {
                let note = "waiting for an external controller to expand this PVC";
                ctx.event(&*claim, EventType::Normal, "ExternalExpanding", note);
            }
            Step::Grow(size) => {
                let note = format!("External resizer is resizing volume {}", Key::of(&*volume).name);
                ctx.event(&*claim, EventType::Normal, "Resizing", &note);
                let capacity = json!({"spec": {"capacity": {"storage": size}}});
                ctx.patch::<PersistentVolume>(&Key::of(&*volume), capacity).await?;
                let capacity = json!({"status": {"capacity": {"storage": size}}});
                ctx.patch_status::<PersistentVolumeClaim>(key, capacity).await?;
                ctx.event(&*claim, EventType::Normal, "VolumeResizeSuccessful", "Resize volume succeeded");
            }
        }
        Ok(Outcome::Done)
    }
}

fn plan<'a>(claim: &'a PersistentVolumeClaim, volume: &PersistentVolume) -> Step<'a> {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let is_its_own = reference.is_some_and(|reference| reference.uid == claim.metadata.uid);
    let wanted =
        claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref()?.get("storage"));
    let has = claim.status.as_ref().and_then(|status| status.capacity.as_ref()?.get("storage"));
    let (Some(wanted), Some(has), true) = (wanted, has, is_its_own) else { return Step::Nothing };
    if billionths(&wanted.0) <= billionths(&has.0) {
        return Step::Nothing;
    }
    match annotation(&volume.metadata, PROVISIONED_BY) {
        Some(PROVISIONER) => Step::Grow(wanted),
        _ => Step::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(wanted: &str, has: &str) -> PersistentVolumeClaim {
        kubewright_objects::from_value(json!({"metadata": {"name": "data", "uid": "u"},
            "spec": {"volumeName": "disk", "resources": {"requests": {"storage": wanted}}},
            "status": {"phase": "Bound", "capacity": {"storage": has}}}))
        .expect("a claim")
    }

    fn volume(provisioner: &str, uid: &str) -> PersistentVolume {
        kubewright_objects::from_value(json!({
            "metadata": {"name": "disk", "annotations": {PROVISIONED_BY: provisioner}},
            "spec": {"claimRef": {"uid": uid}}}))
        .expect("a volume")
    }

    #[test]
    fn only_what_is_asked_for_and_not_there_is_grown_by_whoever_made_it() {
        let larger = claim("2Gi", "1Gi");
        assert_eq!(plan(&larger, &volume(PROVISIONER, "u")), Step::Grow(&Quantity("2Gi".into())));
        assert_eq!(plan(&larger, &volume("disk.example.com", "u")), Step::Wait);
        assert_eq!(plan(&larger, &volume(PROVISIONER, "another")), Step::Nothing);
        assert_eq!(plan(&claim("1024Mi", "1Gi"), &volume(PROVISIONER, "u")), Step::Nothing);
    }
}
