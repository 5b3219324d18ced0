//! From what happens in the cluster to the lines that a person wants to see.

use std::{collections::BTreeMap, time::Duration};

use kube::api::DynamicObject;
use serde_json::Value;

use crate::change::{Change, Id, holds};

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
    shape: Shape,
    /// How it was before it was last changed, and when that was.
    before: Option<(Shape, Duration)>,
}

/// The part of a Deployment's spec that people change: how many pods of which images.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shape {
    replicas: Option<i64>,
    images: Vec<String>,
}

impl Reporter {
    /// The lines for `change`, which was seen `at` this time since the start. The same state twice gives no line twice.
    pub(crate) fn observe(&mut self, change: &Change, at: Duration) -> Vec<String> {
        let id = change.id();
        if change.gone {
            return self.gone(change, &id, at).into_iter().collect();
        }
        let mut lines = Vec::new();
        let known = self.seen.get(&id).cloned();
        if known.is_none() {
            lines.extend(self.appeared(change, &id, at));
        }
        let mut seen = known.unwrap_or_else(|| Seen { shape: Shape::of(&change.object), ..Seen::default() });
        lines.extend(seen.reshaped(change, &id, at));
        lines.extend(seen.progressed(change, &id));
        self.seen.insert(id, seen);
        lines
    }

    fn gone(&mut self, change: &Change, id: &Id, at: Duration) -> Option<String> {
        self.seen.remove(id)?;
        if let Some(controller) = change.controller() {
            self.deleted.insert(id.clone(), Deleted { at, controller: controller.to_owned() });
        }
        if self.deleted.len() > REMEMBERED {
            let oldest = self.deleted.iter().min_by_key(|(_, deleted)| deleted.at).map(|(id, _)| id.clone());
            oldest.and_then(|id| self.deleted.remove(&id));
        }
        Some(format!("{id} deleted"))
    }

    /// What is told when an object is seen first. Of pods it is told when they run, of CRDs when they are served.
    fn appeared(&mut self, change: &Change, id: &Id, at: Duration) -> Option<String> {
        let deleted = self.deleted.remove(id);
        match (id.kind.as_str(), deleted) {
            ("pod" | "customresourcedefinition", _) => None,
            (_, Some(deleted)) if change.controller() == Some(&deleted.controller) => {
                Some(format!("{id} healed: it is back {} after it was deleted", milliseconds(deleted.at, at)))
            }
            _ => Some(format!("{id} created")),
        }
    }
}

impl Seen {
    /// What is told when a Deployment is changed, or changed back by its controller.
    fn reshaped(&mut self, change: &Change, id: &Id, at: Duration) -> Option<String> {
        let shape = Shape::of(&change.object);
        if id.kind != "deployment" || shape == self.shape {
            return None;
        }
        let old = std::mem::replace(&mut self.shape, shape);
        let what = old.difference(&self.shape);
        match self.before.take() {
            Some((before, changed)) if before == self.shape && change.controller().is_some() => {
                Some(format!("{id} healed: {what} again {} after it was changed", milliseconds(changed, at)))
            }
            _ => {
                self.before = Some((old, at));
                Some(format!("{id} changed: {what}"))
            }
        }
    }

    /// What is told when an object gets further: served, running, ready; or is no longer ready.
    fn progressed(&mut self, change: &Change, id: &Id) -> Vec<String> {
        let object = &change.object;
        let mut lines = Vec::new();
        if id.kind == "pod" && !self.running && text(object, "/status/phase") == Some("Running") {
            self.running = true;
            let node = text(object, "/spec/nodeName").unwrap_or("no node");
            lines.push(format!("{id} running on {node}"));
        }
        let ready = is_ready(object, &id.kind);
        if ready != self.ready {
            self.ready = ready;
            lines.push(match (id.kind.as_str(), ready) {
                ("customresourcedefinition", true) => format!("{id} installed"),
                (_, true) => format!("{id} ready"),
                (_, false) => format!("{id} no longer ready"),
            });
        }
        lines
    }
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
        changes.iter().zip(times).flat_map(|(change, at)| reporter.observe(change, at)).collect()
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
        let pod = |status: Value| {
            let metadata = json!({"name": "p", "namespace": "default"});
            change(
                "pod",
                false,
                json!({"metadata": metadata, "spec": {"nodeName": "node-0"}, "status": status}),
            )
        };
        let running = json!({"phase": "Running"});
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(
            describe(&[
                pod(json!({"phase": "Pending"})),
                pod(running.clone()),
                pod(ready.clone()),
                pod(ready),
                pod(running)
            ]),
            ["pod default/p running on node-0", "pod default/p ready", "pod default/p no longer ready"]
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
