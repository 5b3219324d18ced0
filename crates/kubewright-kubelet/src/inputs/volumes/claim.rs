//! The volumes of claims (`pkg/kubelet/volumemanager/populator/desired_state_of_world_populator.go`).

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use kubewright_meta::well_known::PROVISIONER;

use super::plan::at_host;
use super::{Content, Planned, VolumeError};
use crate::inputs::fetched::{Fetched, find};
use crate::inputs::place::{self, PodPlace};

/// While it is on a claim, the claim does not go as long as a pod uses it.
const PROTECTED: &str = "kubernetes.io/pvc-protection";

/// The volume of the claim called `name`.
pub(super) fn plan(
    name: &str,
    volume: &Volume,
    pod: &Pod,
    fetched: &Fetched,
    place: PodPlace<'_>,
) -> Result<Planned, VolumeError> {
    let namespace = place::namespace(pod);
    let process = |message: String| {
        VolumeError::process(&volume.name, format!("error processing PVC {namespace}/{name}: {message}"))
    };
    let claim = claim(name, fetched).map_err(process)?;
    if volume.ephemeral.is_some() && !is_of(claim, pod) {
        // component-helpers/storage/ephemeral, VolumeIsForPod
        let message = format!(
            "PVC {namespace}/{name} was not created for pod {namespace}/{} (pod is not owner)",
            place::name(pod)
        );
        return Err(VolumeError::process(&volume.name, message));
    }
    let bound = persistent_volume(claim, fetched).map_err(process)?;
    let mut planned = of_persistent_volume(bound, place).map_err(|message| {
        VolumeError::set_up(bound.metadata.name.as_deref().unwrap_or_default(), message)
    })?;
    let only_read = volume.persistent_volume_claim.as_ref().and_then(|source| source.read_only);
    planned.read_only |= only_read.unwrap_or_default();
    Ok(planned)
}

/// The claim, when a pod may use it (`getPVCExtractPV`).
fn claim<'a>(name: &str, fetched: &'a Fetched) -> Result<&'a PersistentVolumeClaim, String> {
    let missing = || format!("persistentvolumeclaims {name:?} not found");
    let found = find(&fetched.claims, name).and_then(|claim| claim.ok_or_else(missing));
    let claim = found.map_err(|message| format!("failed to fetch PVC from API server: {message}"))?;
    let protected = claim.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == PROTECTED);
    if claim.metadata.deletion_timestamp.is_some() && !protected {
        return Err("PVC is being deleted".to_owned());
    }
    if claim.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Bound") {
        return Err("PVC is not bound".to_owned());
    }
    Ok(claim)
}

fn is_of(claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    let mut owners = claim.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.controller == Some(true) && owner.uid == place::uid(pod))
}

/// The volume that the claim is bound to, when it is bound to the claim too (`getPVSpec`).
fn persistent_volume<'a>(
    claim: &PersistentVolumeClaim,
    fetched: &'a Fetched,
) -> Result<&'a PersistentVolume, String> {
    let name = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
    if name.is_empty() {
        return Err("PVC has empty pvc.Spec.VolumeName".to_owned());
    }
    let missing = || format!("persistentvolumes {name:?} not found");
    let found = find(&fetched.persistent_volumes, name).and_then(|volume| volume.ok_or_else(missing));
    let volume = found.map_err(|message| format!("failed to fetch PV {name} from API server: {message}"))?;
    let Some(reference) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else {
        return Err(format!(
            "found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
        ));
    };
    if reference.uid != claim.metadata.uid {
        let (bound, uid) = (reference.uid.as_deref(), claim.metadata.uid.as_deref());
        return Err(format!(
            "found PV object {name} but its pv.Spec.ClaimRef.UID {} does not point to claim.UID {}",
            bound.unwrap_or_default(),
            uid.unwrap_or_default()
        ));
    }
    Ok(volume)
}

/// What keeps the data of a PersistentVolume.
fn of_persistent_volume(volume: &PersistentVolume, place: PodPlace<'_>) -> Result<Planned, String> {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let spec = volume.spec.as_ref().ok_or("it has no spec")?;
    if spec.volume_mode.as_deref() == Some("Block") {
        return Err("block volumes are not supported by this node".to_owned());
    }
    if let Some(source) = spec.csi.as_ref().filter(|source| source.driver == PROVISIONER) {
        let content = Content::Lasting { folder: place.node.lasting(name) };
        return Ok(Planned { content, read_only: source.read_only.unwrap_or_default() });
    }
    let of_host = if let Some(source) = &spec.host_path {
        at_host(&source.path, source.type_.as_deref().unwrap_or_default(), place)
    } else if let Some(source) = &spec.local {
        at_host(&source.path, "Directory", place)
    } else {
        return Err(format!(
            "this node has only volumes of the provisioner {PROVISIONER}, hostPath and local volumes"
        ));
    };
    of_host.ok_or_else(|| "hostPath and local volumes are not allowed on this node".to_owned())
}
