//! Pods: how far they have come, in one word.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::{age, ago};
use super::column::{NAME, text as column};
use super::printer::Printer;
use super::value::{at, cells, condition, count, flag, items, number, text, text_or};

/// Prints pods.
pub const PODS: Printer = Printer::new(
    &[
        NAME,
        column("Ready"),
        column("Status"),
        column("Restarts"),
        column("Age"),
        column("IP").wide(),
        column("Node").wide(),
        column("Nominated Node").wide(),
        column("Readiness Gates").wide(),
    ],
    row,
)
.with_conditions(conditions);

/// The conditions of a pod's row: whether it has ended (`pkg/printers/internalversion/printers.go`, `printPod`).
fn conditions(pod: &Value) -> Option<Value> {
    let message = match text(pod, "/status/phase") {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    let reason = text(pod, "/status/phase");
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn row(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = Summary::of(pod);
    let restarts = match (summary.restarts.count, summary.restarts.last) {
        (0, _) | (_, "") => summary.restarts.count.to_string(),
        (count, last) => format!("{count} ({} ago)", ago(last, now)),
    };
    cells![
        text(pod, "/metadata/name"),
        format!("{}/{}", summary.ready, summary.containers),
        summary.status,
        restarts,
        age(pod, now),
        text_or(pod, "/status/podIPs/0/ip", "<none>"),
        text_or(pod, "/spec/nodeName", "<none>"),
        text_or(pod, "/status/nominatedNodeName", "<none>"),
        readiness_gates(pod),
    ]
}

fn readiness_gates(pod: &Value) -> String {
    let gates = items(pod, "/spec/readinessGates");
    let open = gates.iter().filter(|gate| condition(pod, text(gate, "/conditionType"))).count();
    if gates.is_empty() { "<none>".to_owned() } else { format!("{open}/{}", gates.len()) }
}

/// Restarts of containers: how many, and when the last one was (the time at which the container before ended).
#[derive(Clone, Copy, Default)]
struct Restarts<'a> {
    count: i64,
    last: &'a str,
}

impl<'a> Restarts<'a> {
    fn add(&mut self, status: &'a Value) {
        self.count += number(status, "/restartCount");
        // Times of this form sort as text.
        self.last = self.last.max(text(status, "/lastState/terminated/finishedAt"));
    }
}

struct Summary<'a> {
    status: String,
    restarts: Restarts<'a>,
    ready: usize,
    containers: usize,
}

impl<'a> Summary<'a> {
    fn of(pod: &'a Value) -> Self {
        let sidecars =
            items(pod, "/spec/initContainers").iter().filter(|container| is_sidecar(container)).count();
        let mut summary = Summary {
            status: first_word(pod),
            restarts: Restarts::default(),
            ready: 0,
            containers: count(pod, "/spec/containers") + sidecars,
        };
        let sidecar_restarts = summary.initialize(pod);
        if let Ok(restarts) | Err((restarts, true)) =
            sidecar_restarts.map_err(|it| (it, condition(pod, "Initialized")))
        {
            summary.restarts = restarts;
            summary.run(pod);
        }
        summary.end(pod);
        summary
    }

    /// Looks at the init containers, up to the first that is not done. Ok when all are; with the restarts of those
    /// that go on running.
    fn initialize(&mut self, pod: &'a Value) -> Result<Restarts<'a>, Restarts<'a>> {
        let specs = items(pod, "/spec/initContainers");
        let mut of_sidecars = Restarts::default();
        for (index, status) in items(pod, "/status/initContainerStatuses").iter().enumerate() {
            let name = text(status, "/name");
            let sidecar = specs.iter().any(|spec| text(spec, "/name") == name && is_sidecar(spec));
            self.restarts.add(status);
            if sidecar {
                of_sidecars.add(status);
            }
            let terminated = at(status, "/state/terminated");
            if terminated.is_some_and(|end| number(end, "/exitCode") == 0) {
                continue;
            }
            if sidecar && flag(status, "/started") {
                self.ready += usize::from(flag(status, "/ready"));
                continue;
            }
            let waiting = text(status, "/state/waiting/reason");
            self.status = match terminated {
                Some(end) => format!("Init:{}", end_of(end)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
                None => format!("Init:{index}/{}", specs.len()),
            };
            return Err(of_sidecars);
        }
        Ok(of_sidecars)
    }

    /// Looks at the containers, from the last to the first: what the first one says goes.
    fn run(&mut self, pod: &'a Value) {
        let (mut running, mut error) = (false, None);
        for status in items(pod, "/status/containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = text(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.status);
            } else if let Some(end) = at(status, "/state/terminated") {
                self.status = end_of(end);
                if number(end, "/exitCode") != 0 {
                    error = Some(self.status.clone());
                }
            } else if flag(status, "/ready") && at(status, "/state/running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" {
            if running && condition(pod, "Ready") {
                "Running".clone_into(&mut self.status);
            } else if let Some(error) = error {
                self.status = error;
            } else if running {
                "NotReady".clone_into(&mut self.status);
            }
        }
    }

    /// Looks at whether the pod is being deleted.
    fn end(&mut self, pod: &Value) {
        if text(pod, "/metadata/deletionTimestamp").is_empty() {
            return;
        }
        if text(pod, "/status/reason") == "NodeLost" {
            "Unknown".clone_into(&mut self.status);
        } else if !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut self.status);
        }
    }
}

/// What the pod says of itself, before its containers are looked at.
fn first_word(pod: &Value) -> String {
    let gated = items(pod, "/status/conditions")
        .iter()
        .any(|one| text(one, "/type") == "PodScheduled" && text(one, "/reason") == "SchedulingGated");
    let word = text_or(pod, "/status/reason", text(pod, "/status/phase"));
    if gated { "SchedulingGated".to_owned() } else { word.to_owned() }
}

/// An init container that goes on running.
fn is_sidecar(container: &Value) -> bool {
    text(container, "/restartPolicy") == "Always"
}

/// How a container ended.
fn end_of(terminated: &Value) -> String {
    match (text(terminated, "/reason"), number(terminated, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better than references to them")]
mod tests {
    use super::*;

    /// Ready, status and restarts.
    fn shown(spec: Value, status: Value) -> [String; 3] {
        let pod = json!({"metadata": {"name": "a"}, "spec": spec, "status": status});
        of_pod(&pod)
    }

    fn of_pod(pod: &Value) -> [String; 3] {
        let row = row(pod, "2026-01-01T01:00:00Z".parse().expect("a time"));
        [1, 2, 3].map(|index| row[index].as_str().expect("text").to_owned())
    }

    fn running(name: &str) -> Value {
        json!({"name": name, "ready": true, "started": true, "restartCount": 0, "state": {"running": {}}})
    }

    fn ended(name: &str, end: Value) -> Value {
        json!({"name": name, "ready": false, "restartCount": 0, "state": {"terminated": end}})
    }

    #[test]
    fn the_row_of_a_pod_that_has_ended_says_so() {
        let of = |phase: &str| conditions(&json!({"status": {"phase": phase}}));
        assert_eq!(of("Failed").map(|told| told[0]["message"].clone()), Some(json!("The pod failed.")));
        assert_eq!(of("Succeeded").map(|told| told[0]["reason"].clone()), Some(json!("Succeeded")));
        assert_eq!(of("Running"), None);
    }

    #[test]
    fn a_running_pod_is_as_ready_as_its_containers() {
        let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        assert_eq!(shown(spec.clone(), json!({"phase": "Pending"})), ["0/2", "Pending", "0"]);
        let waiting =
            json!({"name": "b", "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}});
        let status = json!({"phase": "Pending", "containerStatuses": [running("a"), waiting]});
        assert_eq!(shown(spec.clone(), status), ["1/2", "ContainerCreating", "0"]);
        let status = json!({"phase": "Running", "containerStatuses": [running("a"), running("b")]});
        assert_eq!(shown(spec, status), ["2/2", "Running", "0"]);
    }

    #[test]
    fn restarts_tell_when_the_last_one_was() {
        let mut status = running("a");
        status["restartCount"] = json!(3);
        status["lastState"] = json!({"terminated": {"finishedAt": "2026-01-01T00:55:00Z"}});
        let status = json!({"phase": "Running", "containerStatuses": [status]});
        assert_eq!(shown(json!({"containers": [{}]}), status), ["1/1", "Running", "3 (5m ago)"]);
    }

    #[test]
    fn the_end_of_containers_is_told() {
        let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        let of = |end: Value| {
            shown(
                spec.clone(),
                json!({"phase": "Failed", "containerStatuses": [ended("a", end), running("b")]}),
            )
        };
        assert_eq!(of(json!({"exitCode": 1, "reason": "Error"})), ["1/2", "Error", "0"]);
        assert_eq!(of(json!({"exitCode": 2})), ["1/2", "ExitCode:2", "0"]);
        assert_eq!(of(json!({"exitCode": 137, "signal": 9})), ["1/2", "Signal:9", "0"]);
        assert_eq!(of(json!({"exitCode": 0, "reason": "Completed"})), ["1/2", "NotReady", "0"]);
        let ready = json!({
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [ended("a", json!({"exitCode": 0, "reason": "Completed"})), running("b")],
        });
        assert_eq!(shown(spec, ready), ["1/2", "Running", "0"]);
    }

    #[test]
    fn init_containers_come_first() {
        let spec = json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}, {"name": "j"}]});
        let of = |status: Value| {
            shown(
                spec.clone(),
                json!({
                    "phase": "Pending",
                    "initContainerStatuses": [ended("i", json!({"exitCode": 0})), status],
                    "containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "PodInitializing"}}}],
                }),
            )
        };
        assert_eq!(of(json!({"name": "j", "state": {"running": {}}}))[1], "Init:1/2");
        assert_eq!(
            of(json!({"name": "j", "state": {"waiting": {"reason": "PodInitializing"}}}))[1],
            "Init:1/2"
        );
        assert_eq!(
            of(json!({"name": "j", "state": {"waiting": {"reason": "ErrImagePull"}}}))[1],
            "Init:ErrImagePull"
        );
        assert_eq!(of(ended("j", json!({"exitCode": 1, "reason": "Error"})))[1], "Init:Error");
        assert_eq!(of(ended("j", json!({"exitCode": 1})))[1], "Init:ExitCode:1");
        assert_eq!(of(ended("j", json!({"exitCode": 0})))[1], "PodInitializing");
    }

    #[test]
    fn sidecars_count_as_containers() {
        let spec = json!({"containers": [{"name": "a"}], "initContainers": [{"name": "s", "restartPolicy": "Always"}]});
        let mut sidecar = running("s");
        sidecar["restartCount"] = json!(2);
        let status = json!({"phase": "Running", "initContainerStatuses": [sidecar], "containerStatuses": [running("a")]});
        assert_eq!(shown(spec, status), ["2/2", "Running", "2"]);
    }

    #[test]
    fn a_pod_that_is_being_deleted_is_terminating() {
        let mut pod = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}});
        assert_eq!(of_pod(&pod)[1], "Terminating");
        pod["status"] = json!({"phase": "Succeeded"});
        assert_eq!(of_pod(&pod)[1], "Succeeded");
        pod["status"] = json!({"phase": "Running", "reason": "NodeLost"});
        assert_eq!(of_pod(&pod)[1], "Unknown");
    }

    #[test]
    fn gates_are_told() {
        let conditions = json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]);
        let status = json!({"phase": "Pending", "conditions": conditions});
        assert_eq!(shown(json!({}), status)[1], "SchedulingGated");
        let pod = json!({
            "spec": {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
            "status": {"conditions": [{"type": "b", "status": "True"}]},
        });
        assert_eq!(row(&pod, Timestamp::UNIX_EPOCH)[8], "1/2");
    }
}
