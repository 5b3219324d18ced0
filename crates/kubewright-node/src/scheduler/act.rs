//! What a decision is written as.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Binding as PodBinding, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kubewright_objects::devices::ResourceClaim;
use kubewright_runtime::{Context, Error, EventType, Key};
use serde_json::{Value, json};

use super::decision::{Nomination, Refused};
use super::devices::Reservation;
use super::pod_info::PodInfo;
use super::volumes::Binding;
use crate::facts::{condition_json, conditions};

/// What holds a claim as long as it has devices.
const CLAIM_FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// The longest note of an event (`NoteLengthLimit`); what is longer ends in dots.
const LONGEST_NOTE: usize = 1024;

/// Gives the pod its node; false when the pod is gone or somebody else gave it one.
pub(super) async fn bind(ctx: &Context, pod_info: &PodInfo, node: &str) -> Result<bool, Error> {
    let name = pod_info.pod.metadata.name.clone().unwrap_or_default();
    let namespace = pod_info.namespace();
    let binding = PodBinding {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(namespace.to_owned()),
            uid: pod_info.pod.metadata.uid.clone(),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            kind: Some("Node".into()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    };
    let api = Api::<Pod>::namespaced(ctx.client().clone(), namespace);
    let bound: Result<Value, _> =
        api.create_subresource("binding", &name, &PostParams::default(), &binding).await;
    match bound.map_err(Error::from) {
        Ok(_) => {}
        Err(error) if error.is_not_found() || error.is_conflict() => return Ok(false),
        Err(error) => return Err(error),
    }
    let note = format!("Successfully assigned {namespace}/{name} to {node}");
    ctx.event(&*pod_info.pod, EventType::Normal, "Scheduled", &note);
    Ok(true)
}

/// Gives claims their devices, and says that they are the pod's (`bindClaim`); false when somebody else wrote to one.
pub(super) async fn reserve(
    ctx: &Context,
    pod_info: &PodInfo,
    reservations: &[Reservation],
) -> Result<bool, Error> {
    for Reservation { claim, allocation } in reservations {
        let key = Key::of(&**claim);
        if allocation.is_some() {
            match ctx.add_finalizer(&**claim, CLAIM_FINALIZER).await {
                Err(error) if error.is_not_found() || error.is_conflict() => return Ok(false),
                written => written?,
            }
        }
        let Some(claim) = ctx.get::<ResourceClaim>(&key) else { return Ok(false) };
        let mut users = claim.status["reservedFor"].as_array().cloned().unwrap_or_default();
        let meta = &pod_info.pod.metadata;
        users.push(json!({"resource": "pods", "name": meta.name, "uid": meta.uid}));
        let mut status = json!({"reservedFor": users});
        if let Some(allocation) = allocation {
            status["allocation"] = finished(ctx, allocation.clone());
        }
        let patch =
            json!({"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status});
        match ctx.patch_status::<ResourceClaim>(&key, patch).await {
            Err(error) if error.is_not_found() || error.is_conflict() => return Ok(false),
            written => written?,
        };
    }
    Ok(true)
}

/// An allocation with its time, and an identity for each share of a device.
fn finished(ctx: &Context, mut allocation: Value) -> Value {
    allocation["allocationTimestamp"] = json!(Time(ctx.world().clock.now()));
    let results = allocation.pointer_mut("/devices/results").and_then(Value::as_array_mut);
    for result in results.into_iter().flatten().filter(|result| result["shareID"] == "") {
        result["shareID"] = ctx.world().dice.uid().into();
    }
    allocation
}

/// Has volumes bound, or made, for a pod on its way to `node` (`BindPodVolumes`).
pub(super) async fn bind_volumes(ctx: &Context, bindings: &[Binding], node: &str) -> Result<(), Error> {
    for binding in bindings {
        let written = match binding {
            Binding::Static { volume, claim } => {
                let patch = claimed(volume, claim);
                ctx.patch::<PersistentVolume>(&Key::of(&**volume), patch).await.map(|_| ())
            }
            Binding::Provision(claim) => {
                let selected = json!({"volume.kubernetes.io/selected-node": node});
                let annotations = claim.metadata.annotations.as_ref();
                if annotations.is_some_and(|all| {
                    all.get("volume.kubernetes.io/selected-node").map(String::as_str) == Some(node)
                }) {
                    continue;
                }
                let patch = json!({"metadata": {"annotations": selected}});
                ctx.patch::<PersistentVolumeClaim>(&Key::of(&**claim), patch).await.map(|_| ())
            }
        };
        match written {
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            written => written?,
        }
    }
    Ok(())
}

/// The patch that makes `volume` that of `claim`; the volume binder does the rest (`GetBindVolumeToClaim`).
fn claimed(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Value {
    json!({
        "metadata": {
            "resourceVersion": volume.metadata.resource_version,
            "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
        },
        "spec": {"claimRef": {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "namespace": claim.metadata.namespace, "name": claim.metadata.name, "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resource_version,
        }},
    })
}

/// Writes down why the pod has no node, and tells people, unless both was done before.
pub(super) async fn refuse(ctx: &Context, pod_info: &PodInfo, refused: &Refused) -> Result<(), Error> {
    let now = Time(ctx.world().clock.now());
    let Some(patch) = refusal(&pod_info.pod, &refused.message, &refused.nomination, &now) else {
        return Ok(());
    };
    match ctx.patch_status::<Pod>(&Key::of(&*pod_info.pod), patch).await {
        Err(error) if error.is_not_found() => return Ok(()),
        written => written?,
    };
    ctx.event(&*pod_info.pod, EventType::Warning, "FailedScheduling", &note(&refused.message));
    Ok(())
}

/// Tells people that what was decided about a pod could not be written.
pub(super) fn failed(ctx: &Context, pod_info: &PodInfo, error: &Error) {
    // That somebody else wrote to it meanwhile is nothing for people.
    if !error.is_conflict() {
        ctx.event(&*pod_info.pod, EventType::Warning, "FailedScheduling", &note(&error.to_string()));
    }
}

fn note(message: &str) -> String {
    if message.len() <= LONGEST_NOTE {
        return message.to_owned();
    }
    let end = (0..=LONGEST_NOTE - 4).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
    format!("{} ...", &message[..end])
}

/// The status patch that says `message` and the nomination; `None` when the status says both already.
fn refusal(pod: &Pod, message: &str, nomination: &Nomination, now: &Time) -> Option<Value> {
    let standing = conditions(pod).iter().find(|condition| condition.type_ == "PodScheduled");
    let refused = standing.filter(|condition| condition.status == "False");
    let says_it = refused.is_some_and(|condition| {
        condition.reason.as_deref() == Some("Unschedulable") && condition.message.as_deref() == Some(message)
    });
    let nominated = pod.status.as_ref().and_then(|status| status.nominated_node_name.as_deref());
    let wanted = match nomination {
        Nomination::Keep => nominated,
        Nomination::Clear => None,
        Nomination::Node(node) => Some(&**node),
    };
    if says_it && wanted.unwrap_or_default() == nominated.unwrap_or_default() {
        return None;
    }
    let since = refused.and_then(|condition| condition.last_transition_time.clone()).unwrap_or(now.clone());
    let said = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
        "lastProbeTime": null, "lastTransitionTime": since, "observedGeneration": pod.metadata.generation});
    Some(json!({
        "metadata": {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version},
        "status": {"conditions": with_condition(pod, said), "nominatedNodeName": wanted},
    }))
}

/// The pod's conditions with this one in the place of its like.
fn with_condition(pod: &Pod, said: Value) -> Vec<Value> {
    let kind = said["type"].clone();
    let mut all: Vec<Value> = conditions(pod).iter().map(condition_json).collect();
    match all.iter_mut().find(|condition| condition["type"] == kind) {
        Some(condition) => *condition = said,
        None => all.push(said),
    }
    all
}

/// Sends the victims away (`PreemptPod` in `pkg/scheduler/framework/preemption/executor.go`).
pub(super) async fn preempt(
    ctx: &Context,
    pod_info: &PodInfo,
    node: &str,
    victims: &[Arc<PodInfo>],
) -> Result<(), Error> {
    let now = Time(ctx.world().clock.now());
    for victim in victims.iter().filter(|victim| !victim.is_terminating) {
        let key = Key::of(&*victim.pod);
        let said = json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
            "message": format!("{}: preempting to accommodate a higher priority pod", super::NAME),
            "lastProbeTime": null, "lastTransitionTime": now, "observedGeneration": victim.pod.metadata.generation});
        let patch = json!({
            "metadata": {"uid": victim.pod.metadata.uid},
            "status": {"conditions": with_condition(&ctx.get::<Pod>(&key).unwrap_or(Arc::clone(&victim.pod)), said)},
        });
        match ctx.patch_status::<Pod>(&key, patch).await {
            Err(error) if error.is_not_found() || error.is_conflict() => continue,
            written => written?,
        };
        ctx.delete::<Pod>(&key, DeleteParams::default()).await?;
        let note = format!("Preempted by pod {} on node {node}", pod_info.uid);
        ctx.event(&*victim.pod, EventType::Normal, "Preempted", &note);
    }
    Ok(())
}

/// Takes back what was promised to pods that a more important one outranks.
pub(super) async fn take_back_promises(ctx: &Context, outranked: &[Arc<PodInfo>]) -> Result<(), Error> {
    for other in outranked.iter().filter(|other| !other.nominated_node().is_empty()) {
        let patch =
            json!({"metadata": {"uid": other.pod.metadata.uid}, "status": {"nominatedNodeName": null}});
        match ctx.patch_status::<Pod>(&Key::of(&*other.pod), patch).await {
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            written => {
                written?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START;

    use super::*;

    #[test]
    fn a_refusal_is_written_once_for_each_reason() {
        let now = Time(SIMULATION_START);
        let pod = json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": []}});
        let mut pod: Pod = kubewright_objects::from_value(pod).expect("a pod");
        let none = "no nodes available to schedule pods";
        let patch = refusal(&pod, none, &Nomination::Keep, &now).expect("a patch");
        pod.status = kubewright_objects::from_value(&patch["status"]).ok();
        assert_eq!(refusal(&pod, none, &Nomination::Clear, &now), None);
        assert!(
            refusal(&pod, "0/1 nodes are available: 1 Insufficient cpu.", &Nomination::Keep, &now).is_some()
        );
        let promised = refusal(&pod, none, &Nomination::Node("n".into()), &now).expect("a patch");
        assert_eq!(promised["status"]["nominatedNodeName"], "n");
    }

    #[test]
    fn a_long_message_ends_in_dots() {
        assert_eq!(note("short"), "short");
        let cut = note(&"ä".repeat(600));
        assert!(cut.len() <= LONGEST_NOTE && cut.ends_with(" ..."));
    }
}
