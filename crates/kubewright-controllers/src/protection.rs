//! Protection of what is in use: the finalizer that admission put on a claim, a volume or an attributes class goes when
//! it is being deleted and nobody uses it (`pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}`).

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimCondition, Pod,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Api;
use kube::api::ListParams;
use kubewright_runtime::{Context, Controller, Error, Key, Object, Outcome, Reconciler, finalizer};
use kubewright_spec::{Version, has_feature};

use crate::pod;

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";

/// The controller of claims: pods use them. From v1.37 on it tells since when they are not used.
pub(crate) fn claims(kubernetes: Version) -> Controller {
    let tells_unused = has_feature(kubernetes, "PersistentVolumeClaimUnusedSinceTime");
    Controller::new("pvc-protection-controller", Claims { tells_unused })
        .for_kind::<PersistentVolumeClaim>()
        .watches(|pod: &Pod| {
            let namespace = pod.metadata.namespace.clone().unwrap_or_default();
            claims_of(pod).map(|claim| Key::namespaced(namespace.clone(), claim.name)).collect()
        })
}

/// The controller of volumes: claims are bound to them.
pub(crate) fn volumes() -> Controller {
    Controller::new("pv-protection-controller", Volumes).for_kind::<PersistentVolume>()
}

k8s_openapi::k8s_if_ge_1_34! {
    use k8s_openapi::api::storage::v1::VolumeAttributesClass;

    const ATTRIBUTES_CLASS: &str = "kubernetes.io/vac-protection";

    /// The controller of attributes classes: claims and volumes have them.
    pub(crate) fn attributes_classes() -> Vec<Controller> {
        let controller = Controller::new("vac-protection-controller", AttributesClasses)
            .for_kind::<VolumeAttributesClass>()
            .watches(|claim: &PersistentVolumeClaim| classes_of_claim(claim).map(Key::cluster_scoped).collect())
            .watches(|volume: &PersistentVolume| class_of_volume(volume).map(Key::cluster_scoped).into_iter().collect());
        vec![controller]
    }

    struct AttributesClasses;

    impl Reconciler for AttributesClasses {
        async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
            let Some(class) = ctx.get::<VolumeAttributesClass>(key) else { return Ok(Outcome::Done) };
            let is_used = || {
                let claims = ctx.list::<PersistentVolumeClaim>(None);
                let volumes = ctx.list::<PersistentVolume>(None);
                claims.iter().any(|claim| classes_of_claim(claim).any(|name| name == key.name))
                    || volumes.iter().any(|volume| class_of_volume(volume).is_some_and(|name| name == key.name))
            };
            match need(&class.metadata, ATTRIBUTES_CLASS) {
                Need::Add => write(ctx, &*class, ATTRIBUTES_CLASS, true).await,
                Need::Release if !is_used() => write(ctx, &*class, ATTRIBUTES_CLASS, false).await,
                Need::Release | Need::Nothing => Ok(Outcome::Done),
            }
        }
    }

    fn classes_of_claim(claim: &PersistentVolumeClaim) -> impl Iterator<Item = String> + '_ {
        let wanted = claim.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.clone());
        let status = claim.status.as_ref();
        let current = status.and_then(|status| status.current_volume_attributes_class_name.clone());
        let target = status
            .and_then(|status| status.modify_volume_status.as_ref())
            .and_then(|modify| modify.target_volume_attributes_class_name.clone());
        [wanted, current, target].into_iter().flatten().filter(|name| !name.is_empty())
    }

    fn class_of_volume(volume: &PersistentVolume) -> Option<String> {
        volume.spec.as_ref()?.volume_attributes_class_name.clone().filter(|name| !name.is_empty())
    }
}

k8s_openapi::k8s_if_le_1_33! {
    /// Their type is of v1beta1 in this version of k8s-openapi, which is not served: they are left alone.
    pub(crate) fn attributes_classes() -> Vec<Controller> {
        Vec::new()
    }
}

/// What the finalizer of an object needs.
#[derive(Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// It was made before there was protection.
    Add,
    /// It is to go, if nobody uses it.
    Release,
}

fn need(meta: &ObjectMeta, finalizer: &str) -> Need {
    let has = meta.finalizers.iter().flatten().any(|one| one == finalizer);
    match (meta.deletion_timestamp.is_some(), has) {
        (true, true) => Need::Release,
        (false, false) => Need::Add,
        _ => Need::Nothing,
    }
}

/// Adds the finalizer, or takes it off. The object's version is that which was looked at.
async fn write<K: Object>(ctx: &Context, object: &K, name: &str, add: bool) -> Result<Outcome, Error> {
    let mut changed = object.clone();
    if add {
        finalizer::add(&mut changed, name);
    } else {
        finalizer::remove(&mut changed, name);
    }
    match ctx.update(&changed).await {
        Err(error) if error.is_not_found() => Ok(Outcome::Done),
        written => written.map(|_| Outcome::Done),
    }
}

struct Claims {
    /// Whether a condition tells that no pod names them.
    tells_unused: bool,
}

impl Reconciler for Claims {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(claim) = ctx.get::<PersistentVolumeClaim>(key) else { return Ok(Outcome::Done) };
        // The controller that binds them writes their status until they are bound.
        let is_bound = claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
        if self.tells_unused && is_bound && claim.metadata.deletion_timestamp.is_none() {
            let pods = ctx.list::<Pod>(key.namespace.as_deref());
            let is_used = pods.iter().any(|pod| names(pod, &claim));
            if let Some(told) = record_unused(&claim, !is_used, ctx.world().clock.now()) {
                return match ctx.update_status(&told).await {
                    Err(error) if error.is_not_found() => Ok(Outcome::Done),
                    written => written.map(|_| Outcome::Done),
                };
            }
        }
        match need(&claim.metadata, CLAIM) {
            Need::Nothing => Ok(Outcome::Done),
            Need::Add => write(ctx, &*claim, CLAIM, true).await,
            Need::Release => {
                let namespace = key.namespace.clone().unwrap_or_default();
                let known = ctx.list::<Pod>(Some(&namespace));
                if known.iter().any(|pod| uses(pod, &claim)) {
                    return Ok(Outcome::Done);
                }
                // What the cache does not show may be there already.
                let live = Api::<Pod>::namespaced(ctx.client().clone(), &namespace);
                if live.list(&ListParams::default()).await?.iter().any(|pod| uses(pod, &claim)) {
                    return Ok(Outcome::Done);
                }
                write(ctx, &*claim, CLAIM, false).await
            }
        }
    }
}

struct Volumes;

impl Reconciler for Volumes {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(volume) = ctx.get::<PersistentVolume>(key) else { return Ok(Outcome::Done) };
        let is_bound = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
        match need(&volume.metadata, VOLUME) {
            Need::Add => write(ctx, &*volume, VOLUME, true).await,
            Need::Release if !is_bound => write(ctx, &*volume, VOLUME, false).await,
            Need::Release | Need::Nothing => Ok(Outcome::Done),
        }
    }
}

/// A claim that a pod names, or that was made for it.
struct ClaimOf {
    name: String,
    made_for_it: bool,
}

fn claims_of(pod: &Pod) -> impl Iterator<Item = ClaimOf> + '_ {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = pod.spec.iter().filter_map(|spec| spec.volumes.as_ref()).flatten();
    volumes.filter_map(move |volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(claim), _) => Some(ClaimOf { name: claim.claim_name.clone(), made_for_it: false }),
        (None, Some(_)) => Some(ClaimOf { name: format!("{name}-{}", volume.name), made_for_it: true }),
        (None, None) => None,
    })
}

/// Whether the claim was made for the pod.
fn is_owned(claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    let owners = claim.metadata.owner_references.iter().flatten();
    owners
        .into_iter()
        .any(|owner| owner.controller == Some(true) && Some(&owner.uid) == pod.metadata.uid.as_ref())
}

/// Whether a pod that has not ended names the claim, on a node or not (`podUsesPVCForUnusedSince`).
fn names(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let is_named = |used: ClaimOf| used.name == name && (!used.made_for_it || is_owned(claim, pod));
    !pod::is_finished(pod) && claims_of(pod).any(is_named)
}

const UNUSED: &str = "Unused";

/// The claim with the condition that tells whether it is unused; none where it is told already (`updateUnusedCondition`).
fn record_unused(
    claim: &PersistentVolumeClaim,
    is_unused: bool,
    now: Timestamp,
) -> Option<PersistentVolumeClaim> {
    let told = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let told = told.into_iter().find(|condition| condition.type_ == UNUSED);
    let status = if is_unused { "True" } else { "False" };
    if told.is_some_and(|told| told.status == status) {
        return None;
    }
    let (reason, message) = if is_unused {
        ("NoPodsUsingPVC", "No pods are currently referencing this PVC")
    } else {
        ("PodUsingPVC", "A pod is currently referencing this PVC")
    };
    let condition = PersistentVolumeClaimCondition {
        type_: UNUSED.to_owned(),
        status: status.to_owned(),
        last_transition_time: Some(Time(now)),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        ..PersistentVolumeClaimCondition::default()
    };
    let mut claim = claim.clone();
    let conditions = claim.status.get_or_insert_default().conditions.get_or_insert_default();
    match conditions.iter_mut().find(|condition| condition.type_ == UNUSED) {
        Some(told) => *told = condition,
        None => conditions.push(condition),
    }
    Some(claim)
}

/// Whether a pod on a node uses the claim. One that waits for a node will not get there: the claim is being deleted.
fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    !pod::node_name(pod).is_empty()
        && claims_of(pod).any(|used| {
            used.name == name && (!used.made_for_it || (!pod::is_finished(pod) && is_owned(claim, pod)))
        })
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::json;

    use super::*;

    fn pod(node: &str, phase: &str) -> Pod {
        kubewright_objects::from_value(json!({"metadata": {"name": "p", "uid": "u"}, "status": {"phase": phase},
            "spec": {"nodeName": node, "containers": [], "volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "e", "ephemeral": {}}]}}))
        .expect("a pod")
    }

    fn claim(name: &str, owner: &str) -> PersistentVolumeClaim {
        kubewright_objects::from_value(json!({"metadata": {"name": name, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": true}]}}))
        .expect("a claim")
    }

    #[test]
    fn a_claim_is_used_by_pods_on_nodes_only() {
        assert!(uses(&pod("n", "Running"), &claim("data", "")));
        assert!(uses(&pod("n", "Succeeded"), &claim("data", "")));
        assert!(!uses(&pod("", "Pending"), &claim("data", "")));
        assert!(!uses(&pod("n", "Running"), &claim("other", "")));
    }

    #[test]
    fn a_claim_made_for_a_pod_is_used_while_the_pod_runs_and_owns_it() {
        assert!(uses(&pod("n", "Running"), &claim("p-e", "u")));
        assert!(!uses(&pod("n", "Running"), &claim("p-e", "another")));
        assert!(!uses(&pod("n", "Failed"), &claim("p-e", "u")));
    }

    #[test]
    fn a_claim_is_told_to_be_unused_until_a_pod_names_it() {
        let claim = claim("data", "");
        assert!(names(&pod("", "Pending"), &claim) && !names(&pod("n", "Succeeded"), &claim));
        let unused = record_unused(&claim, true, NOW).expect("nothing is told yet");
        let told = |claim: &PersistentVolumeClaim| {
            let status = claim.status.clone().unwrap_or_default();
            let conditions = status.conditions.unwrap_or_default().into_iter();
            conditions.map(|condition| (condition.status, condition.reason)).collect::<Vec<_>>()
        };
        assert_eq!(told(&unused), [("True".to_owned(), Some("NoPodsUsingPVC".to_owned()))]);
        assert_eq!(record_unused(&unused, true, NOW), None);
        let used = record_unused(&unused, false, NOW).expect("a pod came");
        assert_eq!(told(&used), [("False".to_owned(), Some("PodUsingPVC".to_owned()))]);
    }

    #[test]
    fn the_finalizer_comes_with_life_and_goes_with_deletion() {
        let mut meta = ObjectMeta::default();
        assert_eq!(need(&meta, CLAIM), Need::Add);
        meta.finalizers = Some(vec![CLAIM.into()]);
        assert_eq!(need(&meta, CLAIM), Need::Nothing);
        meta.deletion_timestamp = Some(Time(NOW));
        assert_eq!(need(&meta, CLAIM), Need::Release);
        meta.finalizers = None;
        assert_eq!(need(&meta, CLAIM), Need::Nothing);
    }
}
