//! What is to be done for a claim (`syncClaim`).

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus, Pod,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kubewright_node::storage::{annotation, class_of_claim, is_bound_to, named_class};
use kubewright_runtime::{Context, Error};

use super::matching::{best, has_annotation, objection};
use super::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, annotate, provision, set_phase, waiting_pods,
};
use crate::event::NewEvent;

/// Says that a class is the one of claims that name none.
const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// What a claim is looked at with.
pub(super) struct Observed<'a> {
    pub(super) volumes: &'a [Arc<PersistentVolume>],
    pub(super) classes: &'a [Arc<StorageClass>],
    /// Those of the claim's namespace.
    pub(super) pods: &'a [Arc<Pod>],
}

/// What to do.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Both objects refer to each other, and say so.
    Bind(Arc<PersistentVolume>),
    /// There is nothing for it yet.
    Pend(Option<NewEvent>),
    /// It had a volume.
    Lose(NewEvent),
    /// It gets the default class, and is looked at again.
    Classify(String),
    /// A volume is made for it, by this controller or by somebody else.
    Provision(Arc<StorageClass>),
}

impl Step {
    /// Whether a new volume or class may change what is to be done.
    pub(super) fn waits(&self) -> bool {
        !matches!(self, Self::Bind(_))
    }
}

/// What to do for `claim`.
pub(super) fn plan(claim: &PersistentVolumeClaim, observed: &Observed<'_>) -> Step {
    let volume =
        claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).filter(|name| !name.is_empty());
    let named =
        |name: &str| observed.volumes.iter().find(|volume| volume.metadata.name.as_deref() == Some(name));
    match (has_annotation(&claim.metadata, BIND_COMPLETED), volume) {
        (true, None) => lost(
            "ClaimLost",
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
        ),
        (true, Some(name)) => match named(name) {
            None => {
                lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
            }
            Some(volume) if is_of(volume, claim) => Step::Bind(Arc::clone(volume)),
            Some(_) => lost(
                "ClaimMisbound",
                "Two claims are bound to the same volume, this one is bound incorrectly",
            ),
        },
        (false, None) => find(claim, observed),
        (false, Some(name)) => named(name).map_or(Step::Pend(None), |volume| take(claim, volume)),
    }
}

fn lost(reason: &'static str, note: &str) -> Step {
    Step::Lose(NewEvent::warning(reason, note))
}

/// Whether a volume is free, or this very claim's.
fn is_of(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    reference.is_none_or(|reference| reference.uid == claim.metadata.uid)
}

/// For a claim that takes any volume that suits.
fn find(claim: &PersistentVolumeClaim, observed: &Observed<'_>) -> Step {
    let name = class_of_claim(claim);
    let class = observed.classes.iter().find(|class| class.metadata.name.as_deref() == Some(name));
    let delayed =
        class.is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"));
    if let Some(volume) = best(claim, observed.volumes, delayed) {
        return Step::Bind(volume);
    }
    if named_class(claim).is_none()
        && let Some(default) = default_class(observed.classes)
    {
        return Step::Classify(default);
    }
    if delayed && annotation(&claim.metadata, SELECTED_NODE).is_none() {
        return Step::Pend(Some(waits_for_pod(&waiting_pods(claim, observed.pods))));
    }
    match class {
        Some(class) => Step::Provision(Arc::clone(class)),
        None if name.is_empty() => Step::Pend(Some(NewEvent::normal(
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
        ))),
        None => Step::Pend(Some(NewEvent::warning(
            "ProvisioningFailed",
            format!("storageclass.storage.k8s.io {name:?} not found"),
        ))),
    }
}

fn waits_for_pod(pods: &[String]) -> NewEvent {
    match pods {
        [] => NewEvent::normal(
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding",
        ),
        [pod] => NewEvent::normal("WaitForPodScheduled", format!("waiting for pod {pod} to be scheduled")),
        pods => NewEvent::normal(
            "WaitForPodScheduled",
            format!("waiting for pods {} to be scheduled", pods.join(",")),
        ),
    }
}

/// The newest of the classes that say they are the default; of several of one moment the first by name.
fn default_class(classes: &[Arc<StorageClass>]) -> Option<String> {
    let is_default = |class: &&Arc<StorageClass>| {
        DEFAULT_CLASS.iter().any(|name| annotation(&class.metadata, name) == Some("true"))
    };
    let made = |class: &Arc<StorageClass>| {
        class.metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |time| time.0)
    };
    let newest = classes
        .iter()
        .filter(is_default)
        .min_by_key(|class| (std::cmp::Reverse(made(class)), class.metadata.name.clone()));
    newest.and_then(|class| class.metadata.name.clone())
}

/// For a claim that wants this volume.
fn take(claim: &PersistentVolumeClaim, volume: &Arc<PersistentVolume>) -> Step {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    if is_bound_to(volume, claim) {
        return Step::Bind(Arc::clone(volume));
    }
    if volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_some()) {
        let note = format!("volume {name:?} already bound to a different claim.");
        return Step::Pend(Some(NewEvent::warning("FailedBinding", note)));
    }
    match objection(volume, claim) {
        None => Step::Bind(Arc::clone(volume)),
        Some(why) => {
            let note = format!("Cannot bind to requested volume {name:?}: {why}");
            Step::Pend(Some(NewEvent::warning("VolumeMismatch", note)))
        }
    }
}

/// What came of a step.
pub(super) enum Acted {
    /// Nothing is left to do until something else changes.
    Settled,
    /// The claim is to be looked at again.
    Advanced,
}

/// Does it. The volume is written before the claim: what is half done is finished by the next look.
pub(super) async fn act(ctx: &Context, claim: &PersistentVolumeClaim, step: Step) -> Result<Acted, Error> {
    match step {
        Step::Bind(volume) => bind(ctx, claim, &volume).await?,
        Step::Pend(event) => {
            if let Some(event) = event {
                event.record(ctx, claim);
            }
            set_status(ctx, claim, "Pending", None).await?;
        }
        Step::Lose(event) => {
            if phase(claim) != "Lost" {
                set_status(ctx, claim, "Lost", None).await?;
                event.record(ctx, claim);
            }
        }
        Step::Classify(class) => {
            let mut changed = claim.clone();
            changed.spec.get_or_insert_default().storage_class_name = Some(class);
            ctx.update(&changed).await?;
            return Ok(Acted::Advanced);
        }
        Step::Provision(class) => return provision::provision(ctx, claim, &class).await,
    }
    Ok(Acted::Settled)
}

async fn bind(ctx: &Context, claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<(), Error> {
    let volume = match reserved(volume, claim) {
        Some(changed) => ctx.update(&changed).await?,
        None => volume.clone(),
    };
    let volume = set_phase(ctx, volume, "Bound", None).await?;
    let claim = match bound(claim, &volume) {
        Some(changed) => ctx.update(&changed).await?,
        None => claim.clone(),
    };
    set_status(ctx, &claim, "Bound", Some(&volume)).await
}

/// The volume with its half of the bond, if it lacks that.
fn reserved(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<PersistentVolume> {
    let mut changed = volume.clone();
    let by_us = !is_bound_to(volume, claim);
    let reference = changed.spec.get_or_insert_default().claim_ref.get_or_insert_default();
    if by_us || reference.uid != claim.metadata.uid {
        *reference = reference_to(claim);
    }
    if by_us {
        annotate(&mut changed.metadata, BOUND_BY_CONTROLLER);
    }
    (changed != *volume).then_some(changed)
}

/// The reference to a claim that its volume carries.
pub(super) fn reference_to(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("PersistentVolumeClaim".into()),
        namespace: claim.metadata.namespace.clone(),
        name: claim.metadata.name.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// The claim with its half of the bond, if it lacks that.
fn bound(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Option<PersistentVolumeClaim> {
    let mut changed = claim.clone();
    let spec = changed.spec.get_or_insert_default();
    if spec.volume_name != volume.metadata.name {
        spec.volume_name.clone_from(&volume.metadata.name);
        annotate(&mut changed.metadata, BOUND_BY_CONTROLLER);
    }
    annotate(&mut changed.metadata, BIND_COMPLETED);
    (changed != *claim).then_some(changed)
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Saves the status, if it is another.
pub(super) async fn set_status(
    ctx: &Context,
    claim: &PersistentVolumeClaim,
    phase: &str,
    volume: Option<&PersistentVolume>,
) -> Result<(), Error> {
    let status = status(claim, phase, volume);
    if claim.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let changed = PersistentVolumeClaim { status: Some(status), ..claim.clone() };
    ctx.update_status(&changed).await.map(drop)
}

/// The capacity is that of the volume at the moment of the bond: later it may differ on purpose.
fn status(
    claim: &PersistentVolumeClaim,
    phase_wanted: &str,
    volume: Option<&PersistentVolume>,
) -> PersistentVolumeClaimStatus {
    let mut status = claim.status.clone().unwrap_or_default();
    let becomes = phase(claim) != phase_wanted;
    status.phase = Some(phase_wanted.to_owned());
    let Some(spec) = volume.and_then(|volume| volume.spec.as_ref()) else {
        status.access_modes = None;
        status.capacity = None;
        status.current_volume_attributes_class_name = None;
        return status;
    };
    status.access_modes.clone_from(&spec.access_modes);
    if becomes {
        status.capacity.clone_from(&spec.capacity);
        status.current_volume_attributes_class_name.clone_from(&spec.volume_attributes_class_name);
    }
    status
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
