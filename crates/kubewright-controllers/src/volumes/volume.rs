//! What is to be done for a volume (`syncVolume`).

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::DeleteParams;
use kubewright_meta::well_known::PROVISIONER;
use kubewright_node::storage::{annotation, modes_differ};
use kubewright_runtime::{Context, Error, Key, Outcome};

use super::matching::has_annotation;
use super::{BOUND_BY_CONTROLLER, PROVISIONED_BY, set_phase};
use crate::event::NewEvent;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Only its phase has to be this.
    Phase(&'static str),
    /// The claim will be bound by its own look, or never.
    Leave,
    /// The claim never gets it: one has files, the other blocks.
    Mismatch,
    /// Its claim is gone, or has another volume.
    Reclaim,
    /// Its claim has another volume, so it is free again.
    Free,
}

/// The claim that a volume refers to.
pub(super) fn claim_key(volume: &PersistentVolume) -> Option<Key> {
    let reference = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(Key::namespaced(reference.namespace.clone()?, reference.name.clone()?))
}

/// What to do for `volume`, whose claim is this; `None` when the claim that it refers to is gone.
pub(super) fn plan(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> Step {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let uid = reference.and_then(|reference| reference.uid.as_ref()).filter(|uid| !uid.is_empty());
    let Some(uid) = uid else { return Step::Phase("Available") };
    let Some(claim) = claim.filter(|claim| claim.metadata.uid.as_ref() == Some(uid)) else {
        return Step::Reclaim;
    };
    let bound =
        claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref()).filter(|name| !name.is_empty());
    let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    match bound {
        None if modes_differ(volume, claim) => Step::Mismatch,
        None => Step::Leave,
        Some(name) if Some(name) == volume.metadata.name.as_ref() => Step::Phase("Bound"),
        Some(_) if has_annotation(&volume.metadata, PROVISIONED_BY) && policy == Some("Delete") => {
            Step::Reclaim
        }
        Some(_) => Step::Free,
    }
}

/// Looks at the volume and does what is to be done.
///
/// # Errors
/// When a write fails.
pub(super) async fn act(
    ctx: &Context,
    volume: &PersistentVolume,
    claim: Option<&PersistentVolumeClaim>,
) -> Result<Outcome, Error> {
    match plan(volume, claim) {
        Step::Phase(phase) => set_phase(ctx, volume.clone(), phase, None).await.map(drop)?,
        Step::Leave => {}
        Step::Mismatch => record_mismatch(ctx, volume, claim),
        // What the cache does not show may be there already.
        Step::Reclaim if plan(volume, live_claim(ctx, volume).await?.as_ref()) != Step::Reclaim => {}
        Step::Reclaim => reclaim(ctx, volume).await?,
        Step::Free => {
            let freed = ctx.update(&freed(volume)).await?;
            set_phase(ctx, freed, "Available", None).await.map(drop)?;
        }
    }
    Ok(Outcome::Done)
}

async fn live_claim(
    ctx: &Context,
    volume: &PersistentVolume,
) -> Result<Option<PersistentVolumeClaim>, Error> {
    let Some(key) = claim_key(volume) else { return Ok(None) };
    let namespace = key.namespace.unwrap_or_default();
    Ok(Api::namespaced(ctx.client().clone(), &namespace).get_opt(&key.name).await?)
}

fn record_mismatch(ctx: &Context, volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) {
    let Some(claim) = claim else { return };
    let name = |name: Option<&String>| name.cloned().unwrap_or_default();
    let (of_volume, of_claim) = (name(volume.metadata.name.as_ref()), name(claim.metadata.name.as_ref()));
    let note = format!(
        "Cannot bind PersistentVolume to requested PersistentVolumeClaim {of_claim:?} due to incompatible volumeMode."
    );
    NewEvent::warning("VolumeMismatch", note).record(ctx, volume);
    let note = format!(
        "Cannot bind PersistentVolume {of_volume:?} to requested PersistentVolumeClaim due to incompatible volumeMode."
    );
    NewEvent::warning("VolumeMismatch", note).record(ctx, claim);
}

/// The volume is released; what becomes of it then is its policy.
async fn reclaim(ctx: &Context, volume: &PersistentVolume) -> Result<(), Error> {
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let volume = match phase {
        Some("Released" | "Failed") => volume.clone(),
        _ => set_phase(ctx, volume.clone(), "Released", None).await?,
    };
    let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    match policy {
        Some("Retain") => Ok(()),
        Some("Recycle") => {
            fail(ctx, volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!").await
        }
        Some("Delete") => delete(ctx, volume).await,
        _ => {
            let note = "Volume has unrecognized PersistentVolumeReclaimPolicy";
            fail(ctx, volume, "VolumeUnknownReclaimPolicy", note).await
        }
    }
}

/// A simulated volume has nothing behind it that would have to go first. Others are for those who made them.
async fn delete(ctx: &Context, volume: PersistentVolume) -> Result<(), Error> {
    let maker = annotation(&volume.metadata, PROVISIONED_BY);
    let is_external = volume.spec.as_ref().is_some_and(|spec| spec.csi.is_some())
        || maker.is_some_and(|maker| !maker.starts_with("kubernetes.io/"));
    match maker {
        Some(PROVISIONER) => {
            ctx.delete::<PersistentVolume>(&Key::of(&volume), DeleteParams::default()).await.map(drop)
        }
        _ if is_external => Ok(()),
        _ => {
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            let note =
                format!("error getting deleter volume plugin for volume {name:?}: no volume plugin matched");
            fail(ctx, volume, "VolumeFailedDelete", &note).await
        }
    }
}

/// Says once that something failed.
async fn fail(
    ctx: &Context,
    volume: PersistentVolume,
    reason: &'static str,
    note: &str,
) -> Result<(), Error> {
    if volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Failed") {
        return Ok(());
    }
    let failed = set_phase(ctx, volume, "Failed", Some(note)).await?;
    NewEvent::warning(reason, note).record(ctx, &failed);
    Ok(())
}

/// The volume without its bond. What a user reserved stays reserved.
fn freed(volume: &PersistentVolume) -> PersistentVolume {
    let mut changed = volume.clone();
    let by_us =
        changed.metadata.annotations.as_mut().and_then(|all| all.remove(BOUND_BY_CONTROLLER)).is_some();
    let spec = changed.spec.get_or_insert_default();
    if by_us {
        spec.claim_ref = None;
    } else if let Some(reference) = &mut spec.claim_ref {
        reference.uid = None;
    }
    changed
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn volume(annotations: &Value, reference: &Value) -> PersistentVolume {
        kubewright_objects::from_value(json!({"metadata": {"name": "disk", "annotations": annotations},
            "spec": {"claimRef": reference, "persistentVolumeReclaimPolicy": "Delete"}}))
        .expect("a volume")
    }

    fn claim(uid: &str, volume: &str) -> PersistentVolumeClaim {
        kubewright_objects::from_value(json!({"metadata": {"name": "data", "namespace": "ns", "uid": uid},
            "spec": {"volumeName": volume}}))
        .expect("a claim")
    }

    #[test]
    fn a_volume_is_available_until_a_claim_with_its_uid_has_it() {
        let none = json!({});
        assert_eq!(plan(&volume(&none, &json!(null)), None), Step::Phase("Available"));
        let reserved = volume(&none, &json!({"namespace": "ns", "name": "data"}));
        assert_eq!(plan(&reserved, Some(&claim("u", ""))), Step::Phase("Available"));
        let bound = volume(&none, &json!({"namespace": "ns", "name": "data", "uid": "u"}));
        assert_eq!(plan(&bound, Some(&claim("u", ""))), Step::Leave);
        assert_eq!(plan(&bound, Some(&claim("u", "disk"))), Step::Phase("Bound"));
    }

    #[test]
    fn a_volume_whose_claim_is_gone_or_another_is_reclaimed() {
        let bound = volume(&json!({}), &json!({"namespace": "ns", "name": "data", "uid": "u"}));
        assert_eq!(plan(&bound, None), Step::Reclaim);
        assert_eq!(plan(&bound, Some(&claim("successor", "disk"))), Step::Reclaim);
    }

    #[test]
    fn a_volume_whose_claim_has_another_is_free_again_unless_it_was_made_for_it() {
        let reference = json!({"namespace": "ns", "name": "data", "uid": "u"});
        let taken = claim("u", "another");
        let ours = volume(&json!({BOUND_BY_CONTROLLER: "yes"}), &reference);
        assert_eq!(plan(&ours, Some(&taken)), Step::Free);
        assert_eq!(freed(&ours).spec.expect("a specification").claim_ref, None);
        let theirs = volume(&json!({}), &reference);
        assert_eq!(plan(&theirs, Some(&taken)), Step::Free);
        let reference_left = freed(&theirs).spec.expect("a specification").claim_ref.expect("reserved still");
        assert_eq!((reference_left.name.as_deref(), reference_left.uid), (Some("data"), None));
        let made = volume(&json!({PROVISIONED_BY: PROVISIONER}), &reference);
        assert_eq!(plan(&made, Some(&taken)), Step::Reclaim);
    }
}
