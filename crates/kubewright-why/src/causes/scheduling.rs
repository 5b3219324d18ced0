//! Pods without a node: what the scheduler says, or that there is none.

use crate::cause::Cause;
use crate::object::{Id, Object};
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{event_line, few, in_namespace, one_line};

pub(super) fn find(picture: &Picture, pod: &Object) -> Vec<Finding> {
    let gates: Vec<String> = pod
        .list("/spec/schedulingGates")
        .filter_map(|gate| gate["name"].as_str())
        .map(str::to_owned)
        .collect();
    if !gates.is_empty() {
        let message = format!("waits for scheduling gates: {}", few(&gates));
        return vec![Finding::new(
            Cause::SchedulingGated,
            message,
            "whoever set the gates has to remove them",
        )];
    }
    let found = claims(picture, pod);
    if !found.is_empty() {
        return found;
    }
    let scheduled = pod.condition_is("PodScheduled", "False");
    if picture.is_whole("", "Node", "") && picture.all("", "Node").next().is_none() {
        let next = "add a node: `kubewright up --nodes 1`, or one of your cloud";
        return vec![Finding::new(Cause::NoNodes, "the cluster has no nodes", next)];
    }
    let Some(condition) = scheduled else { return vec![no_scheduler(pod)] };
    let message = one_line(condition.message);
    let mut found = refusals(picture, pod, &message);
    if found.is_empty() {
        found.push(Finding::new(
            Cause::Unschedulable,
            format!("no node fits: {message}"),
            "the scheduler's words say which filter refused; change the pod or the nodes",
        ));
    }
    let event = picture.event(pod, &["FailedScheduling"]).map(event_line);
    let evidence = event.unwrap_or_else(|| condition.line());
    found.into_iter().map(|finding| finding.evidence(evidence.clone())).collect()
}

/// The claims that a pod names.
pub(super) fn claim_names(pod: &Object) -> Vec<String> {
    let volumes = pod.list("/spec/volumes");
    let name = |volume: &serde_json::Value| {
        let named = volume["persistentVolumeClaim"]["claimName"].as_str().map(str::to_owned);
        named.or_else(|| {
            let ephemeral = volume.get("ephemeral")?;
            ephemeral.get("volumeClaimTemplate")?;
            Some(format!("{}-{}", pod.name(), volume["name"].as_str()?))
        })
    };
    volumes.filter_map(name).collect()
}

fn claims(picture: &Picture, pod: &Object) -> Vec<Finding> {
    let mut found = Vec::new();
    for name in claim_names(pod) {
        let id = Id::new("", "PersistentVolumeClaim", pod.namespace(), &name);
        if picture.is_absent(&id) {
            found.push(Finding::new(
                Cause::ClaimMissing,
                format!("claim {name} does not exist"),
                format!("create the PersistentVolumeClaim {name}{}", in_namespace(pod.namespace())),
            ));
        } else if let Some(claim) = picture.get("", "PersistentVolumeClaim", pod.namespace(), &name)
            && claim.text("/status/phase") != "Bound"
            && !waits_for_consumer(picture, claim)
        {
            found.push(Finding::new(
                Cause::ClaimUnbound,
                format!("claim {name} is {}", claim.text("/status/phase").to_lowercase()),
                format!("see the claim below: kubewright why pvc/{name}{}", in_namespace(pod.namespace())),
            ));
        }
    }
    found
}

/// Whether a claim's class binds when a pod uses it.
pub(super) fn waits_for_consumer(picture: &Picture, claim: &Object) -> bool {
    let class = picture.get("storage.k8s.io", "StorageClass", "", claim.text("/spec/storageClassName"));
    class.is_some_and(|class| class.text("/volumeBindingMode") == "WaitForFirstConsumer")
}

fn no_scheduler(pod: &Object) -> Finding {
    let name = pod.text("/spec/schedulerName");
    let (message, next) = if matches!(name, "" | "default-scheduler") {
        ("no scheduler has looked at it yet".to_owned(), "is kube-scheduler running?".to_owned())
    } else {
        (
            format!("scheduler {name:?} has not looked at it"),
            format!("run the scheduler {name:?}, or leave spec.schedulerName out"),
        )
    };
    Finding::new(Cause::NoScheduler, message, next)
}

/// What the parts of the scheduler's message mean: `0/2 nodes are available: 1 Insufficient cpu, 1 ...`.
fn refusals(picture: &Picture, pod: &Object, message: &str) -> Vec<Finding> {
    let said = message.split("preemption:").next().unwrap_or_default().trim().trim_end_matches('.');
    let mut found = Vec::new();
    if said.contains("Insufficient ") || said.contains("Too many pods") {
        found.push(Finding::new(
            Cause::InsufficientResources,
            format!("no node has room: {said}; {}", requests(pod)),
            "lower the requests, add a node, or remove what uses the nodes: kubectl describe nodes",
        ));
    }
    if said.contains("untolerated taint") {
        found.push(
            Finding::new(
                Cause::UntoleratedTaint,
                format!("nodes have taints that it does not tolerate: {said}"),
                "add a toleration to the pod, or remove the taint: kubectl taint nodes NODE KEY-",
            )
            .all(taints(picture)),
        );
    }
    if said.contains("node affinity/selector")
        || said.contains("node(s) didn't match") && said.contains("PVC")
    {
        let selector = pod.at("/spec/nodeSelector");
        let wants =
            if selector.is_null() { "its affinity".to_owned() } else { format!("nodeSelector {selector}") };
        found.push(Finding::new(
            Cause::NodeSelectorMismatch,
            format!("no node has the labels that it wants ({wants}): {said}"),
            "label a node: kubectl label nodes NODE KEY=VALUE; or change the selector",
        ));
    }
    found
}

/// The taints of the first few nodes that have some.
fn taints(picture: &Picture) -> Vec<String> {
    let taint = |taint: &serde_json::Value| {
        let text = |key: &str| taint[key].as_str().unwrap_or_default();
        format!("{}={}:{}", text("key"), text("value"), text("effect"))
    };
    let line = |node: &Object| {
        let all: Vec<String> = node.list("/spec/taints").map(taint).collect();
        (!all.is_empty()).then(|| format!("node {} has taints {}", node.name(), few(&all)))
    };
    picture.all("", "Node").filter_map(line).take(5).collect()
}

/// What a pod asks for, in words.
fn requests(pod: &Object) -> String {
    let of = |container: &serde_json::Value| {
        let requests = container["resources"]["requests"].as_object()?;
        let name = container["name"].as_str().unwrap_or_default();
        let all: Vec<String> = requests
            .iter()
            .map(|(resource, amount)| format!("{resource} {}", amount.as_str().unwrap_or_default()))
            .collect();
        Some(format!("container {name} requests {}", all.join(", ")))
    };
    let all: Vec<String> = pod.list("/spec/containers").filter_map(of).collect();
    if all.is_empty() { "it requests nothing".to_owned() } else { few(&all) }
}
