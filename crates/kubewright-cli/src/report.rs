//! From what happens in the cluster to what a person wants to be told.

use std::{collections::BTreeMap, time::Duration};

use kube::api::DynamicObject;
use serde_json::Value;

use crate::{
    change::{Change, Id, condition, holds},
    printer::{Event, Tone},
};

/// So many objects that were deleted are remembered, in case they come back.
const REMEMBERED: usize = 256;

/// Remembers of each object what was told of it, and tells what is new.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    seen: BTreeMap<Id, Seen>,
    deleted: BTreeMap<Id, Deleted>,
}

/// An object that was deleted while something controlled it.
#[derive(Debug)]
struct Deleted {
    at: Duration,
    /// The uid of its controller.
    controller: String,
}

/// What was told of an object.
#[derive(Clone, Debug, Default)]
struct Seen {
    running: bool,
    ready: bool,
    /// Why it is in trouble.
    trouble: Option<String>,
    /// How a pod has ended.
    ended: bool,
    shape: Shape,
    /// How it was before it was last changed, and when that was.
    before: Option<(Shape, Duration)>,
    /// How often the same was to be told of it.
    times: BTreeMap<String, u32>,
}

/// What is said, and how it is meant.
type Said = (String, Tone);

/// The part of a Deployment's spec that people change: how many pods of which images.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shape {
    replicas: Option<i64>,
    images: Vec<String>,
}

impl Reporter {
    /// What there is to tell of `change`, which was seen `at` this time since the start. The same state twice is told once, and what
    /// happens over and over ever less often.
    pub(crate) fn observe(&mut self, change: &Change, at: Duration) -> Vec<Event> {
        let id = change.id();
        let mut all = Vec::new();
        if change.gone {
            all.extend(self.gone(change, &id, at));
        } else {
            let known = self.seen.get(&id).cloned();
            if known.is_none() {
                all.extend(self.appeared(change, &id, at));
            }
            let mut seen =
                known.unwrap_or_else(|| Seen { shape: Shape::of(&change.object), ..Seen::default() });
            all.extend(seen.reshaped(change, &id, at));
            all.extend(seen.progressed(change, &id));
            all = all.into_iter().filter_map(|said| seen.counted(said)).collect();
            self.seen.insert(id.clone(), seen);
        }
        let of = change.controller().map(|owner| owner.name.clone());
        all.into_iter().map(|(what, tone)| Event { at, id: id.clone(), of: of.clone(), what, tone }).collect()
    }

    fn gone(&mut self, change: &Change, id: &Id, at: Duration) -> Option<Said> {
        self.seen.remove(id)?;
        if let Some(controller) = change.controller() {
            self.deleted.insert(id.clone(), Deleted { at, controller: controller.uid.clone() });
        }
        if self.deleted.len() > REMEMBERED {
            let oldest = self.deleted.iter().min_by_key(|(_, deleted)| deleted.at).map(|(id, _)| id.clone());
            oldest.and_then(|id| self.deleted.remove(&id));
        }
        Some(("deleted".to_owned(), Tone::Gone))
    }

    /// What is told when an object is seen first. Of pods it is told when they run, of CRDs when they are served.
    fn appeared(&mut self, change: &Change, id: &Id, at: Duration) -> Option<Said> {
        let deleted = self.deleted.remove(id);
        let is_its = |deleted: &Deleted| change.controller().is_some_and(|by| by.uid == deleted.controller);
        match (id.kind.as_str(), deleted) {
            ("pod" | "customresourcedefinition", _) => None,
            (_, Some(deleted)) if is_its(&deleted) => {
                let back =
                    format!("healed: it is back {} after it was deleted", milliseconds(deleted.at, at));
                Some((back, Tone::Good))
            }
            _ => Some(("created".to_owned(), Tone::Plain)),
        }
    }
}

impl Seen {
    /// What is told when a Deployment is changed, or changed back by its controller.
    fn reshaped(&mut self, change: &Change, id: &Id, at: Duration) -> Option<Said> {
        let shape = Shape::of(&change.object);
        if id.kind != "deployment" || shape == self.shape {
            return None;
        }
        let old = std::mem::replace(&mut self.shape, shape);
        let what = old.difference(&self.shape);
        Some(match self.before.take() {
            Some((before, changed)) if before == self.shape && change.controller().is_some() => {
                let when = milliseconds(changed, at);
                (format!("healed: {what} again {when} after it was changed"), Tone::Good)
            }
            _ => {
                self.before = Some((old, at));
                (format!("changed: {what}"), Tone::Plain)
            }
        })
    }

    /// What is told when an object gets further: served, running, ready, at its end; or is no longer ready, or in trouble.
    fn progressed(&mut self, change: &Change, id: &Id) -> Vec<Said> {
        let object = &change.object;
        let mut all = Vec::new();
        if id.kind == "pod" {
            let phase = text(object, "/status/phase");
            if !self.running && phase == Some("Running") {
                self.running = true;
                let node = text(object, "/spec/nodeName").unwrap_or("no node");
                all.push((format!("running on {node}"), Tone::Good));
            }
            if !self.ended
                && let Some(end) = phase.and_then(|phase| ended(phase, object))
            {
                // It is not ready any more, which goes without saying.
                (self.ended, self.ready) = (true, false);
                all.push(end);
            }
            let trouble = trouble(object);
            if trouble != self.trouble {
                self.trouble = trouble;
                all.extend(self.trouble.clone().map(|why| (why, Tone::Bad)));
            }
        }
        let ready = is_ready(object, &id.kind);
        if ready != self.ready {
            self.ready = ready;
            all.push(match (id.kind.as_str(), ready) {
                ("customresourcedefinition", true) => ("installed".to_owned(), Tone::Good),
                (_, true) => ("ready".to_owned(), Tone::Good),
                (_, false) => ("no longer ready".to_owned(), Tone::Bad),
            });
        }
        all
    }

    /// What happens over and over is told the first, the second, the fourth, the eighth time and so on.
    fn counted(&mut self, (what, tone): Said) -> Option<Said> {
        let times = self.times.entry(what.clone()).or_default();
        *times = times.saturating_add(1);
        match *times {
            1 | 2 => Some((what, tone)),
            times if times.is_power_of_two() => Some((format!("{what} ({times} times by now)"), tone)),
            _ => None,
        }
    }
}

/// How a pod has ended that has.
fn ended(phase: &str, object: &DynamicObject) -> Option<Said> {
    match phase {
        "Succeeded" => Some(("succeeded".to_owned(), Tone::Good)),
        "Failed" => {
            let why = text(object, "/status/reason").map_or_else(String::new, |reason| format!(": {reason}"));
            Some((format!("failed{why}"), Tone::Bad))
        }
        _ => None,
    }
}

/// Why a pod does not get further, in the words of the scheduler or of its node; `None` where it does.
fn trouble(object: &DynamicObject) -> Option<String> {
    let words = |told: &Value| {
        let reason = told["reason"].as_str()?;
        let message = told["message"].as_str().and_then(|message| message.lines().next());
        // When it is tried again changes from one time to the next.
        let message = message.filter(|_| reason != "CrashLoopBackOff");
        Some(message.map_or_else(|| reason.to_owned(), |message| format!("{reason}: {message}")))
    };
    let unscheduled = condition(object, "PodScheduled").filter(|told| told["reason"] == "Unschedulable");
    let containers = ["/status/initContainerStatuses", "/status/containerStatuses"]
        .into_iter()
        .filter_map(|list| object.data.pointer(list)?.as_array())
        .flatten();
    let mut waiting = containers.map(|container| &container["state"]["waiting"]);
    let is_trouble = |told: &&Value| {
        told["reason"]
            .as_str()
            .is_some_and(|reason| !["ContainerCreating", "PodInitializing"].contains(&reason))
    };
    unscheduled.or_else(|| waiting.find(is_trouble)).and_then(words)
}

/// By the condition that its kind has for it: `Ready` of pods, `Established` of CRDs, `Available` of Deployments; custom
/// resources have one of the first and last.
fn is_ready(object: &DynamicObject, kind: &str) -> bool {
    match kind {
        "customresourcedefinition" => holds(object, "Established"),
        "pod" => holds(object, "Ready"),
        "deployment" => holds(object, "Available"),
        _ => holds(object, "Ready") || holds(object, "Available"),
    }
}

impl Shape {
    fn of(object: &DynamicObject) -> Self {
        let containers = object.data.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        let images = containers.into_iter().flatten().filter_map(|container| container["image"].as_str());
        Self {
            replicas: object.data.pointer("/spec/replicas").and_then(Value::as_i64),
            images: images.map(str::to_owned).collect(),
        }
    }

    /// From this one to `new`, in words.
    fn difference(&self, new: &Self) -> String {
        let mut parts = Vec::new();
        if self.images != new.images {
            parts.push(format!("image {} -> {}", self.images.join(","), new.images.join(",")));
        }
        if self.replicas != new.replicas {
            let number =
                |replicas: Option<i64>| replicas.map_or_else(|| "default".to_owned(), |n| n.to_string());
            parts.push(format!("replicas {} -> {}", number(self.replicas), number(new.replicas)));
        }
        parts.join(", ")
    }
}

fn text<'a>(object: &'a DynamicObject, pointer: &str) -> Option<&'a str> {
    object.data.pointer(pointer)?.as_str()
}

fn milliseconds(from: Duration, to: Duration) -> String {
    format!("{} ms", to.saturating_sub(from).as_millis())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(kind: &str, gone: bool, object: Value) -> Change {
        let object = kubewright_objects::from_value(object).expect("an object");
        Change { kind: kind.to_owned(), object, gone }
    }

    fn deployment(image: &str, replicas: i64, gone: bool) -> Change {
        let owner = json!({"apiVersion": "v1", "kind": "X", "name": "x", "uid": "1", "controller": true});
        let template = json!({"spec": {"containers": [{"image": image}]}});
        let metadata = json!({"name": "web", "namespace": "default", "ownerReferences": [owner]});
        change(
            "deployment",
            gone,
            json!({"metadata": metadata, "spec": {"replicas": replicas, "template": template}}),
        )
    }

    fn describe(changes: &[Change]) -> Vec<String> {
        let mut reporter = Reporter::default();
        let times = (0..).map(|n| Duration::from_millis(10 * n));
        let told = changes.iter().zip(times).flat_map(|(change, at)| reporter.observe(change, at));
        told.map(|told| format!("{} {}", told.id, told.what)).collect()
    }

    #[test]
    fn a_deployment_that_comes_back_is_told_as_healed() {
        let there = deployment("nginx", 1, false);
        assert_eq!(
            describe(&[there.clone(), there.clone(), deployment("nginx", 1, true), there]),
            [
                "deployment default/web created",
                "deployment default/web deleted",
                "deployment default/web healed: it is back 10 ms after it was deleted",
            ]
        );
    }

    #[test]
    fn a_deployment_without_a_controller_or_with_another_is_made_again_not_healed() {
        for uid in [None, Some("2")] {
            let mut again = deployment("nginx", 1, false);
            again.object.metadata.owner_references.as_mut().expect("an owner")[0].uid =
                uid.unwrap_or("1").to_owned();
            again.object.metadata.owner_references.take_if(|_| uid.is_none());
            let lines = describe(&[deployment("nginx", 1, false), deployment("nginx", 1, true), again]);
            assert_eq!(lines[2], "deployment default/web created");
        }
    }

    #[test]
    fn a_change_that_is_undone_is_told_as_healed_with_what_differed() {
        let original = || deployment("nginx", 1, false);
        assert_eq!(
            describe(&[original(), deployment("httpd", 4, false), original()])[1..],
            [
                "deployment default/web changed: image nginx -> httpd, replicas 1 -> 4",
                "deployment default/web healed: image httpd -> nginx, replicas 4 -> 1 again 10 ms after it was changed",
            ]
        );
    }

    #[test]
    fn a_second_change_is_not_healing() {
        let lines =
            describe(&[deployment("a", 1, false), deployment("b", 1, false), deployment("c", 1, false)]);
        assert_eq!(lines[2], "deployment default/web changed: image b -> c");
    }

    #[test]
    fn a_pod_is_told_when_it_runs_and_when_it_is_ready_once_each() {
        let running = json!({"phase": "Running"});
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(
            describe(&[
                pod(&json!({"phase": "Pending"})),
                pod(&running),
                pod(&ready),
                pod(&ready),
                pod(&running)
            ]),
            ["pod default/p running on node-0", "pod default/p ready", "pod default/p no longer ready"]
        );
    }

    fn pod(status: &Value) -> Change {
        let metadata = json!({"name": "p", "namespace": "default"});
        change("pod", false, json!({"metadata": metadata, "spec": {"nodeName": "node-0"}, "status": status}))
    }

    #[test]
    fn a_pod_that_does_not_get_further_is_told_with_the_reason() {
        let waiting = |reason: &str, message: &str| {
            let state = json!({"waiting": {"reason": reason, "message": message}});
            pod(&json!({"phase": "Pending", "containerStatuses": [{"state": state}]}))
        };
        let nowhere = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                             "message": "0/1 nodes are available"});
        assert_eq!(
            describe(&[
                pod(&json!({"phase": "Pending", "conditions": [nowhere]})),
                waiting("ContainerCreating", ""),
                waiting("ErrImagePull", "not in the store"),
                waiting("ErrImagePull", "not in the store"),
                waiting("CrashLoopBackOff", "back-off 10s"),
                waiting("CrashLoopBackOff", "back-off 20s"),
            ]),
            [
                "pod default/p Unschedulable: 0/1 nodes are available",
                "pod default/p ErrImagePull: not in the store",
                "pod default/p CrashLoopBackOff",
            ]
        );
    }

    #[test]
    fn a_pod_that_is_done_is_told_as_done_and_not_as_unready() {
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        let done = |phase: &str| pod(&json!({"phase": phase, "reason": "Evicted"}));
        assert_eq!(
            describe(&[pod(&ready), done("Succeeded"), done("Succeeded")])[2..],
            ["pod default/p succeeded"]
        );
        assert_eq!(describe(&[pod(&ready), done("Failed")])[2..], ["pod default/p failed: Evicted"]);
    }

    #[test]
    fn what_happens_over_and_over_is_told_ever_less_often() {
        let condition = |status: &str| {
            pod(&json!({"phase": "Running", "conditions": [{"type": "Ready", "status": status}]}))
        };
        let changes: Vec<Change> = (0..5).flat_map(|_| [condition("True"), condition("False")]).collect();
        assert_eq!(
            describe(&changes)[1..],
            [
                "pod default/p ready",
                "pod default/p no longer ready",
                "pod default/p ready",
                "pod default/p no longer ready",
                "pod default/p ready (4 times by now)",
                "pod default/p no longer ready (4 times by now)",
            ]
        );
    }

    #[test]
    fn a_crd_is_told_when_it_is_served() {
        let crd = |status: &str| {
            let conditions = json!([{"type": "Established", "status": status}]);
            let object = json!({"metadata": {"name": "as.b.c"}, "status": {"conditions": conditions}});
            change("customresourcedefinition", false, object)
        };
        assert_eq!(describe(&[crd("False"), crd("True")]), ["customresourcedefinition as.b.c installed"]);
    }

    #[test]
    fn a_custom_resource_is_told_when_its_condition_turns() {
        let custom = |status: &str| {
            let conditions = json!([{"type": "Available", "status": status}]);
            let metadata = json!({"name": "x", "namespace": "default"});
            change("whitelist", false, json!({"metadata": metadata, "status": {"conditions": conditions}}))
        };
        assert_eq!(
            describe(&[custom("False"), custom("True")]),
            ["whitelist default/x created", "whitelist default/x ready"]
        );
    }

    #[test]
    fn the_memory_of_deleted_objects_is_bounded() {
        let mut reporter = Reporter::default();
        for n in 0..1000_u64 {
            let mut there = deployment("nginx", 1, false);
            there.object.metadata.name = Some(format!("web-{n}"));
            reporter.observe(&there, Duration::from_millis(n));
            reporter.observe(&Change { gone: true, ..there }, Duration::from_millis(n));
        }
        assert_eq!(reporter.deleted.len(), REMEMBERED);
        assert!(reporter.seen.is_empty());
    }
}
