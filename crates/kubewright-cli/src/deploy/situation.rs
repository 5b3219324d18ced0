//! How far a Deployment is, and why it is no farther.

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{ContainerStatus, Event, Pod},
};

/// The annotation that says which ReplicaSet is that of a Deployment as it is now.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// What the cluster says of a Deployment.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    pub(super) deployment: Deployment,
    pub(super) sets: Vec<ReplicaSet>,
    pub(super) pods: Vec<Pod>,
    pub(super) events: Vec<Event>,
}

/// The node of a pod whose kubelet only says that its containers run, by the ids that it gives them.
fn simulated_by(pod: &Pod) -> Option<String> {
    let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let mut ids = containers.filter_map(|container| container.container_id.as_deref());
    let is_simulated = ids.any(|id| id.starts_with("simulated://"));
    is_simulated.then(|| pod.spec.as_ref()?.node_name.clone()).flatten()
}

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Situation {
    /// Whether all its pods run as they should.
    pub(super) done: bool,
    /// In one line.
    pub(super) line: String,
    /// The container whose log says more.
    pub(super) log: Option<Log>,
    /// What to do about it, where we know.
    pub(super) remedy: &'static str,
    /// The simulated node that its pods are on, if they are on one.
    pub(super) simulated: Option<String>,
}

/// The log of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) pod: String,
    pub(super) container: String,
    /// Whether of its last run, which has ended.
    pub(super) previous: bool,
}

impl Situation {
    fn of(line: impl Into<String>) -> Self {
        Self { done: false, line: line.into(), log: None, remedy: "", simulated: None }
    }

    fn with_remedy(mut self, remedy: &'static str) -> Self {
        self.remedy = remedy;
        self
    }
}

impl Observed {
    /// How far it is (`kubectl rollout status`: `pkg/polymorphichelpers/rollout_status.go`), and what holds it up.
    pub(super) fn situation(&self) -> Situation {
        let (spec, status) =
            (self.deployment.spec.clone().unwrap_or_default(), self.deployment.status.clone());
        let status = status.unwrap_or_default();
        if status.observed_generation < self.deployment.metadata.generation {
            return Situation::of("waits for the cluster to notice the Deployment");
        }
        let count = |number: Option<i32>| number.unwrap_or_default();
        let wanted = spec.replicas.unwrap_or(1);
        let (updated, all) = (count(status.updated_replicas), count(status.replicas));
        let available = count(status.available_replicas);
        if updated >= wanted && all <= updated && available >= updated {
            let simulated = self.newest().find_map(simulated_by);
            let is_told = if simulated.is_some() { "simulated" } else { "available" };
            let line = format!("{available} of {wanted} {is_told}");
            return Situation { done: true, simulated, ..Situation::of(line) };
        }
        if let Some(trouble) = self.trouble() {
            return trouble;
        }
        Situation::of(match () {
            () if updated < wanted => format!("{updated} of {wanted} updated"),
            () if all > updated => format!("{} of before to end", all - updated),
            () => format!("{available} of {wanted} available"),
        })
    }

    /// What holds it up.
    fn trouble(&self) -> Option<Situation> {
        let conditions = self.deployment.status.iter().flat_map(|status| status.conditions.iter().flatten());
        for condition in conditions {
            let message = condition.message.clone().unwrap_or_default();
            if (&*condition.type_, &*condition.status) == ("ReplicaFailure", "True") {
                let remedy = if message.contains("exceeded quota") {
                    "raise the quota of its namespace, or remove what uses it up"
                } else {
                    "what refuses its pods is named there: a policy, a webhook, or a missing account"
                };
                return Some(
                    Situation::of(format!("its pods cannot be created: {message}")).with_remedy(remedy),
                );
            }
        }
        self.newest().filter_map(|pod| self.trouble_of(pod)).next()
    }

    /// The pods of the Deployment as it is now.
    fn newest(&self) -> impl Iterator<Item = &Pod> {
        let revision = self.deployment.metadata.annotations.as_ref().and_then(|all| all.get(REVISION));
        let set = self.sets.iter().find(|set| {
            set.metadata.annotations.as_ref().and_then(|all| all.get(REVISION)) == revision
                && revision.is_some()
        });
        let uid = set.and_then(|set| set.metadata.uid.clone());
        self.pods.iter().filter(move |pod| {
            let owners = pod.metadata.owner_references.iter().flatten();
            pod.metadata.deletion_timestamp.is_none()
                && uid.as_ref().is_some_and(|uid| owners.into_iter().any(|owner| owner.uid == *uid))
        })
    }

    fn trouble_of(&self, pod: &Pod) -> Option<Situation> {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let status = pod.status.clone().unwrap_or_default();
        let scheduled =
            status.conditions.iter().flatten().find(|condition| condition.type_ == "PodScheduled");
        if let Some(condition) = scheduled.filter(|condition| condition.status == "False") {
            let message = condition.message.clone().unwrap_or_default();
            let line = format!("pod {name} cannot be placed on a node: {message}");
            return Some(Situation::of(line).with_remedy("the cluster needs a node with room for it"));
        }
        if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none()) {
            let situation = Situation::of(format!("pod {name} waits for a node"));
            return Some(situation.with_remedy("the cluster needs a node with room for it, and a scheduler"));
        }
        let containers =
            status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
        for container in containers {
            if let Some(trouble) = trouble_of_container(&name, container) {
                return Some(trouble);
            }
        }
        let said = self.said_of(pod);
        let waits = if status.phase.as_deref() == Some("Running") { "is not ready" } else { "starts" };
        Some(Situation::of(match said {
            Some(said) => format!("pod {name} {waits}: {said}"),
            None => format!("pod {name} {waits}"),
        }))
    }

    /// The last warning about a pod.
    fn said_of(&self, pod: &Pod) -> Option<String> {
        let about = self.events.iter().filter(|event| {
            event.involved_object.uid == pod.metadata.uid && event.type_.as_deref() == Some("Warning")
        });
        let last = about.max_by_key(|event| (event.last_timestamp.clone(), event.event_time.clone()))?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Some(format!("{}: {}", text(&last.reason), text(&last.message)))
    }
}

/// What is wrong with a container; `None` while it runs or is about to.
fn trouble_of_container(pod: &str, container: &ContainerStatus) -> Option<Situation> {
    let state = container.state.clone().unwrap_or_default();
    let log = |previous| Some(Log { pod: pod.to_owned(), container: container.name.clone(), previous });
    if let Some(ended) = state.terminated.filter(|ended| ended.exit_code != 0) {
        let line = format!("pod {pod} ended with exit code {}", ended.exit_code);
        return Some(Situation { log: log(false), ..Situation::of(line) });
    }
    let waiting = state.waiting?;
    let (reason, message) = (waiting.reason.unwrap_or_default(), waiting.message.unwrap_or_default());
    let image = &container.image;
    // The kubelet says the same again in other words while it waits for the next try.
    let message =
        message.split_once(": ErrImagePull: ").map_or(message.clone(), |(_, reason)| reason.to_owned());
    Some(match &*reason {
        "ErrImagePull" | "ImagePullBackOff" => Situation::of(format!("pod {pod} cannot have its image {image}: {message}"))
            .with_remedy(
                "push the image to a registry that the cluster reaches (`kubewright build --push`), or load it into the \
                 nodes (`kubewright build --load` for this machine)",
            ),
        "ErrImageNeverPull" | "InvalidImageName" | "ImageInspectError" => {
            Situation::of(format!("pod {pod} cannot have its image {image}: {reason}: {message}"))
        }
        "CrashLoopBackOff" => {
            let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
            let code = last.map_or_else(String::new, |ended| format!(" with exit code {}", ended.exit_code));
            let line = format!("pod {pod} ended{code} again and again (CrashLoopBackOff)");
            Situation { log: log(true), ..Situation::of(line) }
        }
        "" | "ContainerCreating" | "PodInitializing" => return None,
        _ => Situation::of(format!("pod {pod} cannot start: {reason}: {message}")),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// One replica is wanted; there is this pod.
    fn with_pod(status: &Value) -> Observed {
        let deployment = json!({
            "metadata": {"generation": 2, "annotations": {REVISION: "2"}},
            "spec": {"replicas": 1, "selector": {}, "template": {}},
            "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1},
        });
        let set = |uid: &str, revision: &str| json!({"metadata": {"uid": uid, "annotations": {REVISION: revision}}, "spec": {"selector": {}}});
        let pod = |name: &str, set: &str, status: &Value| {
            let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "s", "uid": set});
            json!({"metadata": {"name": name, "uid": name, "ownerReferences": [owner]}, "status": status})
        };
        let broken =
            json!({"containerStatuses": [container(&json!({"waiting": {"reason": "ImagePullBackOff"}}))]});
        let typed = |value: Value| value;
        Observed {
            deployment: kubewright_objects::from_value(deployment).expect("a Deployment"),
            sets: kubewright_objects::from_value(typed(json!([set("old", "1"), set("new", "2")])))
                .expect("sets"),
            pods: kubewright_objects::from_value(json!([
                pod("before", "old", &broken),
                pod("now", "new", status)
            ]))
            .expect("pods"),
            events: Vec::new(),
        }
    }

    fn container(state: &Value) -> Value {
        json!({"name": "operator", "image": "app:v1", "imageID": "", "ready": false, "restartCount": 0, "state": state})
    }

    fn with_container(state: &Value) -> Situation {
        with_pod(&json!({"containerStatuses": [container(state)]})).situation()
    }

    #[test]
    fn it_is_done_when_all_pods_are_new_and_available() {
        let mut observed = with_pod(&json!({"phase": "Running"}));
        assert!(!observed.situation().done);
        let status = observed.deployment.status.as_mut().expect("a status");
        status.available_replicas = Some(1);
        status.replicas = Some(2);
        assert!(!observed.situation().done, "an old one is there still");
        observed.deployment.status.as_mut().expect("a status").replicas = Some(1);
        assert_eq!(observed.situation(), Situation { done: true, ..Situation::of("1 of 1 available") });
        observed.deployment.metadata.generation = Some(3);
        assert_eq!(observed.situation().line, "waits for the cluster to notice the Deployment");
    }

    #[test]
    fn pods_that_only_are_said_to_run_are_not_called_available() {
        let mut observed = with_pod(&json!({"phase": "Running"}));
        observed.deployment.status.as_mut().expect("a status").available_replicas = Some(1);
        for pod in &mut observed.pods {
            let mut container = container(&json!({"running": {}}));
            container["containerID"] = json!("simulated://u/operator");
            let status = json!({"phase": "Running", "containerStatuses": [container]});
            pod.status = kubewright_objects::from_value(status).expect("a status");
            pod.spec.get_or_insert_default().node_name = Some("node-0".to_owned());
        }
        let situation = observed.situation();
        assert_eq!((situation.done, &*situation.line), (true, "1 of 1 simulated"));
        assert_eq!(situation.simulated.as_deref(), Some("node-0"));
    }

    #[test]
    fn an_image_that_cannot_be_had_is_named_with_the_remedy() {
        let situation =
            with_container(&json!({"waiting": {"reason": "ErrImagePull", "message": "no such host"}}));
        assert_eq!(situation.line, "pod now cannot have its image app:v1: no such host");
        assert!(situation.remedy.contains("--push") && situation.log.is_none());
    }

    #[test]
    fn a_program_that_ends_again_and_again_has_a_log_to_look_at() {
        let mut state =
            container(&json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}));
        state["lastState"] = json!({"terminated": {"exitCode": 3}});
        let situation = with_pod(&json!({"containerStatuses": [state]})).situation();
        assert_eq!(situation.line, "pod now ended with exit code 3 again and again (CrashLoopBackOff)");
        let log = Log { pod: "now".to_owned(), container: "operator".to_owned(), previous: true };
        assert_eq!(situation.log, Some(log.clone()));
        let situation = with_container(&json!({"terminated": {"exitCode": 1}}));
        assert_eq!(
            (situation.line.as_str(), situation.log),
            ("pod now ended with exit code 1", Some(Log { previous: false, ..log }))
        );
    }

    #[test]
    fn what_the_scheduler_and_the_kubelet_say_is_told() {
        let condition =
            json!({"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"});
        let situation = with_pod(&json!({"conditions": [condition]})).situation();
        assert_eq!(situation.line, "pod now cannot be placed on a node: 0/3 nodes are available");
        let situation = with_container(
            &json!({"waiting": {"reason": "CreateContainerConfigError", "message": "no user"}}),
        );
        assert_eq!(situation.line, "pod now cannot start: CreateContainerConfigError: no user");
        let mut observed = with_pod(&json!({"phase": "Pending", "containerStatuses":
            [container(&json!({"waiting": {"reason": "ContainerCreating"}}))]}));
        assert_eq!(observed.situation().line, "pod now starts");
        let event = |uid: &str, time: &str, message: &str| {
            json!({"metadata": {}, "type": "Warning", "reason": "FailedMount", "message": message,
                "lastTimestamp": time, "involvedObject": {"uid": uid}})
        };
        observed.events = kubewright_objects::from_value(json!([
            event("now", "2030-01-01T00:00:02Z", "no secret"),
            event("now", "2030-01-01T00:00:01Z", "earlier"),
            event("before", "2030-01-01T00:00:03Z", "of another"),
        ]))
        .expect("events");
        assert_eq!(observed.situation().line, "pod now starts: FailedMount: no secret");
    }

    #[test]
    fn pods_that_may_not_be_are_told_with_who_says_so() {
        let mut observed = with_pod(&Value::Null);
        let failure = json!([{"type": "ReplicaFailure", "status": "True", "message": "pods is forbidden: exceeded quota: q"}]);
        observed.deployment.status.as_mut().expect("a status").conditions =
            Some(kubewright_objects::from_value(failure).expect("conditions"));
        let situation = observed.situation();
        assert_eq!(situation.line, "its pods cannot be created: pods is forbidden: exceeded quota: q");
        assert!(situation.remedy.contains("raise the quota"));
    }
}
