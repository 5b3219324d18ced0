//! Pods: where they are in their life, and what holds them there.

use crate::cause::Cause;
use crate::causes::{Around, containers, scheduling};
use crate::object::{Id, Object};
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{event_line, few, in_namespace, one_line};

pub(super) fn find(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object: pod, .. } = *around;
    if pod.is_deleting() || matches!(pod.text("/status/phase"), "Succeeded") {
        return Vec::new();
    }
    if pod.text("/status/phase") == "Failed" {
        return vec![failed(pod)];
    }
    if pod.text("/spec/nodeName").is_empty() {
        return scheduling::find(picture, pod);
    }
    let mut found: Vec<Finding> = node_not_ready(picture, pod).into_iter().collect();
    let missing = config_missing(picture, pod);
    if let Some(missing) = missing.filter(|_| !pod.is_ready()) {
        found.push(missing);
        return found;
    }
    found.extend(containers::find(picture, pod));
    found.extend(readiness_gate(pod));
    if found.is_empty() && !pod.is_ready() {
        found.push(starting(picture, pod));
    }
    found
}

/// `Running, not ready`.
pub(super) fn state(pod: &Object) -> String {
    let phase = pod.text("/status/phase");
    match (phase, pod.is_ready()) {
        ("", _) => "new".to_owned(),
        ("Running", false) => "running, not ready".to_owned(),
        ("Running", true) => "ready".to_owned(),
        (other, _) => other.to_lowercase(),
    }
}

fn failed(pod: &Object) -> Finding {
    let message = one_line(pod.text("/status/message"));
    if pod.text("/status/reason") == "Evicted" {
        return Finding::new(
            Cause::Evicted,
            format!("evicted: {message}"),
            "its controller makes another one; give the pod requests that say what it uses, or the node more room",
        );
    }
    let reason = pod.text("/status/reason");
    let ends = containers::ends(pod);
    let what = if reason.is_empty() { few(&ends) } else { format!("{reason}: {message}") };
    Finding::new(
        Cause::PodFailed,
        format!("failed: {what}"),
        format!("kubectl logs {}{}", pod.name(), in_namespace(pod.namespace())),
    )
    .all(ends)
}

fn node_not_ready(picture: &Picture, pod: &Object) -> Option<Finding> {
    let name = pod.text("/spec/nodeName");
    if picture.is_absent(&Id::new("", "Node", "", name)) {
        return Some(Finding::new(
            Cause::NodeNotReady,
            format!("node {name} does not exist any more"),
            format!("kubectl delete pod {}{}", pod.name(), in_namespace(pod.namespace())),
        ));
    }
    let node = picture.get("", "Node", "", name)?;
    let ready = node.condition("Ready").filter(|one| one.status != "True")?;
    let finding = Finding::new(
        Cause::NodeNotReady,
        format!("node {name} is not ready: {}", one_line(ready.message)),
        format!("look at the node's kubelet: kubewright why node/{name}"),
    );
    Some(finding.evidence(ready.line()))
}

/// ConfigMaps and Secrets that the pod needs and that do not exist.
fn config_missing(picture: &Picture, pod: &Object) -> Option<Finding> {
    let missing: Vec<Id> = crate::gather::named(pod.at("/spec"), pod.namespace())
        .into_iter()
        .filter(|id| picture.is_absent(id))
        .collect();
    let first = missing.first()?;
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let event = picture.event(pod, &["FailedMount", "Failed"]);
    let finding = Finding::new(
        Cause::ConfigMissing,
        format!("{} does not exist", few(&names)),
        format!("create {first}{}, or mark the reference `optional`", in_namespace(pod.namespace())),
    );
    Some(finding.all(event.map(event_line)).all(containers::waits(pod)))
}

fn readiness_gate(pod: &Object) -> Option<Finding> {
    pod.condition_is("ContainersReady", "True")?;
    let gates = pod.list("/spec/readinessGates").filter_map(|gate| gate["conditionType"].as_str());
    let open: Vec<String> =
        gates.filter(|gate| pod.condition_is(gate, "True").is_none()).map(str::to_owned).collect();
    let first = open.first()?;
    let finding = Finding::new(
        Cause::ReadinessGate,
        format!("readiness gate {} is not met", few(&open)),
        "whoever owns that condition has to set it to True: often a load balancer's controller",
    );
    Some(finding.all(pod.condition(first).map(|one| one.line())))
}

fn starting(picture: &Picture, pod: &Object) -> Finding {
    let event = picture.event(pod, &["FailedCreatePodSandBox", "FailedMount", "FailedAttachVolume"]);
    let said =
        event.map_or_else(|| "nothing is wrong so far".to_owned(), |one| one_line(one.text("/message")));
    Finding::new(
        Cause::Starting,
        format!("its containers are starting on node {}: {said}", pod.text("/spec/nodeName")),
        format!("kubectl describe pod {}{}", pod.name(), in_namespace(pod.namespace())),
    )
    .all(event.map(event_line))
    .all(containers::waits(pod))
}
