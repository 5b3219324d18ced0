//! Deployments, ReplicaSets, StatefulSets, DaemonSets.

use crate::cause::Cause;
use crate::causes::{Around, admission};
use crate::object::Object;
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{event_line, few, in_namespace, one_line};

pub(super) fn deployment(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, .. } = *around;
    if object.is_deleting() {
        return Vec::new();
    }
    let mut found: Vec<Finding> = common(around);
    if object.is("/spec/paused")
        && (around.is_target || wanted(object) != object.number("/status/updatedReplicas"))
    {
        found.push(Finding::new(
            Cause::Paused,
            "the rollout is paused: a changed template is not rolled out",
            format!("kubectl rollout resume {}{}", object.id(), in_namespace(object.namespace())),
        ));
    }
    if let Some(condition) = object.condition_is("Progressing", "False") {
        found.push(
            Finding::new(
                Cause::ProgressDeadline,
                format!(
                    "the rollout has made no progress for {}s: {}",
                    object.number("/spec/progressDeadlineSeconds"),
                    one_line(condition.message)
                ),
                format!(
                    "mend the pods below, or go back: kubectl rollout undo {}{}",
                    object.id(),
                    in_namespace(object.namespace())
                ),
            )
            .evidence(condition.line()),
        );
    } else {
        found.extend(rollout_waiting(object));
    }
    let has_sets = picture.owned_by(object).any(|one| one.kind() == "ReplicaSet");
    if !has_sets && let Some(failed) = admission::create_failed(picture, object) {
        found.push(failed);
    }
    found
}

fn wanted(object: &Object) -> i64 {
    object.at("/spec/replicas").as_i64().unwrap_or(1)
}

/// A rollout that goes on: there are old pods, or new ones are not ready.
fn rollout_waiting(object: &Object) -> Option<Finding> {
    if is_behind(object) || object.is("/spec/paused") {
        return None;
    }
    let number = |name: &str| object.number(&format!("/status/{name}"));
    let (updated, all, wanted) = (number("updatedReplicas"), number("replicas"), wanted(object));
    let old = all - updated;
    if old <= 0 {
        return None;
    }
    let ready = number("readyReplicas");
    let text = format!(
        "a rollout goes on: {updated} of {wanted} new pods are made, {old} old ones are there, {ready} are ready in all; old ones \
         go as new ones become available (maxUnavailable {}, maxSurge {})",
        plain(object.at("/spec/strategy/rollingUpdate/maxUnavailable")),
        plain(object.at("/spec/strategy/rollingUpdate/maxSurge")),
    );
    let next = format!("kubectl rollout status {}{}", object.id(), in_namespace(object.namespace()));
    Some(Finding::new(Cause::RolloutWaiting, text, next))
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn replica_set(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, .. } = *around;
    if object.is_deleting() {
        return Vec::new();
    }
    let mut found = if around.is_target { common(around) } else { Vec::new() };
    if object.number("/status/replicas") < object.number("/spec/replicas") {
        found.extend(admission::create_failed(picture, object));
    }
    found
}

pub(super) fn stateful_set(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, .. } = *around;
    if object.is_deleting() {
        return Vec::new();
    }
    let mut found = common(around);
    let pods: Vec<&Object> = picture.owned_by(object).filter(|one| one.kind() == "Pod").collect();
    let is_ordered = object.text("/spec/podManagementPolicy") != "Parallel";
    if is_ordered && let Some(ordinal) = blocking_ordinal(object, &pods) {
        found.push(ordinal);
    }
    if (pods.len() as i64) < wanted(object) {
        found.extend(admission::create_failed(picture, object));
    }
    found
}

/// The first pod that is not ready, where others wait for it.
fn blocking_ordinal(object: &Object, pods: &[&Object]) -> Option<Finding> {
    let start = object.number("/spec/ordinals/start");
    let names = (start..start + wanted(object)).map(|ordinal| format!("{}-{ordinal}", object.name()));
    let names: Vec<String> = names.take(1000).collect();
    let ready =
        |name: &&String| pods.iter().any(|pod| pod.name() == **name && pod.is_ready() && !pod.is_deleting());
    let first = names.iter().find(|name| !ready(name))?;
    let later: Vec<String> = names.iter().skip_while(|name| *name != first).skip(1).cloned().collect();
    let missing: Vec<String> =
        later.into_iter().filter(|name| !pods.iter().any(|pod| pod.name() == *name)).collect();
    if missing.is_empty() {
        return None;
    }
    let text = format!("pod {first} is not ready, and {} are made only after it", few(&missing));
    Some(Finding::new(
        Cause::OrdinalWaiting,
        text,
        format!(
            "kubewright why pod/{first}{}; podManagementPolicy: Parallel makes all at once",
            in_namespace(object.namespace())
        ),
    ))
}

pub(super) fn daemon_set(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, .. } = *around;
    if object.is_deleting() {
        return Vec::new();
    }
    let mut found = common(around);
    let desired = object.number("/status/desiredNumberScheduled");
    if desired == 0 && !is_behind(object) {
        let selector = object.at("/spec/template/spec/nodeSelector");
        let wants = if selector.is_null() { String::new() } else { format!(" (nodeSelector {selector})") };
        let nodes = picture.all("", "Node").count();
        found.push(Finding::new(
            Cause::NoFittingNode,
            format!("none of {nodes} nodes is fit for its pods{wants}"),
            "label the nodes, or change nodeSelector, affinity or tolerations of the template",
        ));
    }
    if object.number("/status/currentNumberScheduled") < desired {
        found.extend(admission::create_failed(picture, object));
    }
    found
}

/// Whether no controller has seen the latest change.
pub(super) fn is_behind(object: &Object) -> bool {
    object.number("/status/observedGeneration") < object.number("/metadata/generation")
}

/// What all workloads have: a controller that looks, and a number of pods that is wanted.
fn common(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, is_target } = *around;
    let mut found = Vec::new();
    if is_behind(object) {
        let (seen, latest) =
            (object.number("/status/observedGeneration"), object.number("/metadata/generation"));
        found.push(not_observed(picture, object, seen, latest));
    }
    if is_target && object.kind() != "DaemonSet" && wanted(object) == 0 {
        found.push(Finding::new(
            Cause::ScaledToZero,
            "no pods are wanted: spec.replicas is 0",
            format!("kubectl scale {} --replicas=1{}", object.id(), in_namespace(object.namespace())),
        ));
    }
    found
}

fn not_observed(picture: &Picture, object: &Object, seen: i64, latest: i64) -> Finding {
    let event = picture.events(object).into_iter().next();
    Finding::new(
        Cause::NotObserved,
        format!(
            "no controller has looked at generation {latest} of it: the status is that of generation {seen}"
        ),
        format!(
            "is the controller of {}s running? (kube-controller-manager, or `kubewright up --controllers`)",
            object.kind()
        ),
    )
    .all(event.map(event_line))
}
