//! The volume binder: which claim has which volume (`pkg/controller/volume/persistentvolume/pv_controller.go`).
//!
//! A claim and a volume refer to each other: the volume by `spec.claimRef`, the claim by `spec.volumeName`. Whoever made
//! which half, what is to be done is a pure function of both objects: [`claim::plan`] and [`volume::plan`]. Volumes of
//! the class provisioner [`kubewright_meta::well_known::PROVISIONER`] are made here, without any storage behind them; those of others are waited
//! for. Claims of a class with `WaitForFirstConsumer` are bound by whoever places their pod: it reserves a volume or names
//! the node.

mod claim;
mod matching;
mod provision;
mod volume;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::{Context, Controller, Error, Event, Key, Outcome, Predicate, Reconciler};
use parking_lot::Mutex;

use self::claim::Acted;

/// The source of its events.
const NAME: &str = "persistentvolume-controller";
/// That this controller, not a user, chose the other half.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// That a claim has been bound once.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Who made a volume.
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The node that the first pod of a claim goes to.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The controllers: of claims, and of volumes.
#[must_use]
pub(crate) fn controllers() -> Vec<Controller> {
    let waiting = Waiting::default();
    let (for_volumes, for_classes) = (waiting.clone(), waiting.clone());
    let claims = Controller::new(NAME, Claims { waiting })
        .for_kind::<PersistentVolumeClaim>()
        .watches(move |volume: &PersistentVolume| for_volumes.and(volume::claim_key(volume)))
        .watches(claims_of_pod)
        .predicate(Predicate::of(|event: &Event<'_, Pod>| matches!(event, Event::Create(_))))
        .watches(move |_: &StorageClass| for_classes.and(None));
    let volumes = Controller::new(format!("{NAME}-volumes"), Volumes)
        .event_source(NAME)
        .for_kind::<PersistentVolume>()
        .watches(|claim: &PersistentVolumeClaim| {
            let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref());
            volume.map(Key::cluster_scoped).into_iter().collect()
        });
    vec![claims, volumes]
}

/// The claims that have no volume yet: any volume or class may be what they wait for.
#[derive(Clone, Default)]
struct Waiting(Arc<Mutex<BTreeSet<Key>>>);

impl Waiting {
    fn and(&self, claim: Option<Key>) -> Vec<Key> {
        let mut keys = self.0.lock().clone();
        keys.extend(claim);
        keys.into_iter().collect()
    }

    fn note(&self, claim: &Key, waits: bool) {
        if waits {
            self.0.lock().insert(claim.clone());
        } else {
            self.0.lock().remove(claim);
        }
    }
}

struct Claims {
    waiting: Waiting,
}

impl Reconciler for Claims {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(claim) = ctx.get::<PersistentVolumeClaim>(key) else {
            self.waiting.note(key, false);
            return Ok(Outcome::Done);
        };
        let volumes = ctx.list::<PersistentVolume>(None);
        let classes = ctx.list::<StorageClass>(None);
        let pods = ctx.list::<Pod>(key.namespace.as_deref());
        let step =
            claim::plan(&claim, &claim::Observed { volumes: &volumes, classes: &classes, pods: &pods });
        self.waiting.note(key, step.waits());
        Ok(match claim::act(ctx, &claim, step).await? {
            Acted::Settled => Outcome::Done,
            // What it wrote itself does not wake it.
            Acted::Advanced => Outcome::RequeueAfter(Duration::ZERO),
        })
    }
}

struct Volumes;

impl Reconciler for Volumes {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(volume) = ctx.get::<PersistentVolume>(key) else { return Ok(Outcome::Done) };
        let claim = volume::claim_key(&volume).and_then(|key| ctx.get::<PersistentVolumeClaim>(&key));
        volume::act(ctx, &volume, claim.as_deref()).await
    }
}

/// The phase of a volume, saved if it is another; the volume as it is then.
async fn set_phase(
    ctx: &Context,
    volume: PersistentVolume,
    phase: &str,
    message: Option<&str>,
) -> Result<PersistentVolume, Error> {
    if volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase) {
        return Ok(volume);
    }
    let mut changed = volume;
    let status = changed.status.get_or_insert_default();
    status.phase = Some(phase.to_owned());
    status.message = message.map(str::to_owned);
    ctx.update_status(&changed).await
}

fn annotate(meta: &mut ObjectMeta, name: &str) {
    meta.annotations.get_or_insert_default().entry(name.to_owned()).or_insert_with(|| "yes".to_owned());
}

fn claims_of_pod(pod: &Pod) -> Vec<Key> {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let claims = volumes.filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(claim), _) => Some(claim.claim_name.clone()),
        (None, Some(_)) => Some(format!("{name}-{}", volume.name)),
        (None, None) => None,
    });
    claims.map(|claim| Key::namespaced(namespace.clone(), claim)).collect()
}

/// Of these pods those that use the claim and wait for a node, by name.
fn waiting_pods(claim: &PersistentVolumeClaim, pods: &[Arc<Pod>]) -> Vec<String> {
    let key = Key::of(claim);
    let waits = |pod: &&Arc<Pod>| {
        crate::pod::node_name(pod).is_empty()
            && !crate::pod::is_finished(pod)
            && claims_of_pod(pod).contains(&key)
    };
    pods.iter().filter(waits).filter_map(|pod| pod.metadata.name.clone()).collect()
}
