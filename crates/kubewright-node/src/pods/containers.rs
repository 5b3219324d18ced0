//! The containers of a pod as they start, end and start again (`pkg/kubelet/kuberuntime`): a pure function from what
//! the pod's status says to what it says next. All that is remembered is in the status.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, Pod,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::script::{Act, Role, Script};
use crate::program::KILLED;

/// The first restart is at once, then there is a pause that doubles (`MaxContainerBackOff` in `pkg/kubelet`).
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A container that ran for twice the longest pause starts anew at once.
const STEADY: Duration = Duration::from_secs(600);

/// The containers of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Containers {
    pub(super) init: Vec<ContainerStatus>,
    pub(super) main: Vec<ContainerStatus>,
    pub(super) ephemeral: Vec<ContainerStatus>,
    /// When something happens next, if nothing else does before.
    pub(super) due: Option<Timestamp>,
}

impl Containers {
    /// What the status of `pod` says of its containers.
    pub(super) fn of(pod: &Pod) -> Self {
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
        let main = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
        let known = |statuses: Option<&Vec<ContainerStatus>>, container: &Container| {
            statuses.into_iter().flatten().find(|status| status.name == container.name).cloned()
        };
        let status_of = |statuses: Option<&Vec<ContainerStatus>>, container: &Container, reason: &str| {
            known(statuses, container).unwrap_or_else(|| created(pod, container, reason))
        };
        let begins = if init.is_empty() { "ContainerCreating" } else { "PodInitializing" };
        let (inits, mains, later) = (
            status.and_then(|status| status.init_container_statuses.as_ref()),
            status.and_then(|status| status.container_statuses.as_ref()),
            status.and_then(|status| status.ephemeral_container_statuses.as_ref()),
        );
        let ephemeral = ephemeral_containers(pod);
        Self {
            init: init.iter().map(|container| status_of(inits, container, "PodInitializing")).collect(),
            main: main.iter().map(|container| status_of(mains, container, begins)).collect(),
            ephemeral: ephemeral
                .iter()
                .map(|container| status_of(later, container, "ContainerCreating"))
                .collect(),
            due: None,
        }
    }

    /// The containers at `now`: what is due has happened. A main container never starts and ends at once, so that
    /// everybody sees it run.
    pub(super) fn at(&self, pod: &Pod, waits_for_probes: bool, now: Timestamp) -> Self {
        let script = Script::of(pod);
        let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always");
        let mut next = Self { due: None, ..self.clone() };
        let mut may_go_on = true;
        let spec = pod.spec.as_ref();
        let inits = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
        let mut due = Vec::new();
        for (container, status) in inits.iter().zip(&mut next.init) {
            let role = role_of_init(container);
            if !may_go_on {
                break;
            }
            let restart = match role {
                Role::Sidecar => "Always",
                _ if policy == "Always" => "OnFailure",
                _ => policy,
            };
            let act = script.act(container, role);
            let life = Life { container, act, restart, waits_for_probes, now };
            due.extend(life.run(status, pod));
            if role == Role::Init && is_running(status) {
                due.extend(life.run(status, pod));
            }
            may_go_on = if role == Role::Sidecar { is_running(status) } else { has_ended_well(status) };
            status.ready = may_go_on;
            if role == Role::Sidecar {
                due.extend(life.make_ready(status));
            }
        }
        let has_begun = self.main.iter().any(|status| {
            is_running(status)
                || ended(status).is_some()
                || status.last_state.as_ref().is_some_and(|last| last.terminated.is_some())
        });
        if may_go_on || has_begun {
            let mains = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
            for (container, status) in mains.iter().zip(&mut next.main) {
                let restart = container.restart_policy.as_deref().unwrap_or(policy);
                let act = script.act(container, Role::Main);
                let life = Life { container, act, restart, waits_for_probes, now };
                due.extend(life.run(status, pod));
                due.extend(life.make_ready(status));
            }
            for (container, status) in ephemeral_containers(pod).iter().zip(&mut next.ephemeral) {
                let act = script.act(container, Role::Ephemeral);
                let life = Life { container, act, restart: "Never", waits_for_probes, now };
                due.extend(life.run(status, pod));
            }
        }
        next.due = due.into_iter().min();
        next
    }

    /// All that run are stopped at `now`, by themselves or by force; nothing starts any more.
    pub(super) fn stopped(&self, by_force: bool, now: Timestamp) -> Self {
        let code = if by_force { KILLED } else { 0 };
        self.stopped_with(|_| code, now)
    }

    /// As [`Self::stopped`], each with the exit code that there is for the name of its container.
    pub(super) fn stopped_with(&self, code: impl Fn(&str) -> i32, now: Timestamp) -> Self {
        let mut next = Self { due: None, ..self.clone() };
        for status in next.init.iter_mut().chain(&mut next.main).chain(&mut next.ephemeral) {
            if is_running(status) {
                terminate(status, code(&status.name), now, None);
                status.ready = false;
            }
        }
        for status in next.main.iter_mut().chain(&mut next.ephemeral) {
            status.ready = false;
        }
        next
    }

    /// What is the same of all of them, whatever is due.
    pub(super) fn statuses(&self) -> [&[ContainerStatus]; 3] {
        [&self.init, &self.main, &self.ephemeral]
    }
}

/// What an init container is to its pod.
pub(super) fn role_of_init(container: &Container) -> Role {
    if container.restart_policy.as_deref() == Some("Always") { Role::Sidecar } else { Role::Init }
}

/// The ephemeral containers of a pod, in the form of others.
pub(super) fn ephemeral_containers(pod: &Pod) -> Vec<Container> {
    let all = pod.spec.as_ref().and_then(|spec| spec.ephemeral_containers.as_deref()).unwrap_or_default();
    let of = all.iter().map(|one| Container {
        name: one.name.clone(),
        image: one.image.clone(),
        command: one.command.clone(),
        args: one.args.clone(),
        termination_message_path: one.termination_message_path.clone(),
        termination_message_policy: one.termination_message_policy.clone(),
        ..Container::default()
    });
    of.collect()
}

pub(super) fn is_running(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// How the container has ended, if it has, and is not to start again.
pub(super) fn ended(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.state.as_ref()?.terminated.as_ref()
}

pub(super) fn has_ended_well(status: &ContainerStatus) -> bool {
    ended(status).is_some_and(|ended| ended.exit_code == 0)
}

/// One container at one moment.
struct Life<'a> {
    container: &'a Container,
    act: Act,
    restart: &'a str,
    /// Whether it is ready only when its probe's first delay is over.
    waits_for_probes: bool,
    now: Timestamp,
}

impl Life<'_> {
    /// Does what is due; says when the next thing is.
    fn run(&self, status: &mut ContainerStatus, pod: &Pod) -> Option<Timestamp> {
        let state = status.state.clone().unwrap_or_default();
        if let Some(running) = &state.running {
            return self.end(status, running);
        }
        let ended = state.terminated.clone().or_else(|| status.last_state.as_ref()?.terminated.clone());
        let Some(ended) = ended else {
            self.start(status);
            return self.due(status);
        };
        let starts_again = match self.restart {
            "Always" => true,
            "OnFailure" => ended.exit_code != 0,
            _ => false,
        };
        if state.terminated.is_some() && !starts_again {
            return None;
        }
        let pause = pause(status.restart_count, &ended);
        let due = ended.finished_at.as_ref().map_or(self.now, |finished| finished.0) + pause;
        status.last_state = Some(ContainerState { terminated: Some(ended), ..ContainerState::default() });
        if due <= self.now {
            status.restart_count += 1;
            self.start(status);
            return self.due(status);
        }
        let message = format!(
            "back-off {} restarting failed container={} pod={}_{}({})",
            spoken(pause),
            self.container.name,
            pod.metadata.name.as_deref().unwrap_or_default(),
            pod.metadata.namespace.as_deref().unwrap_or_default(),
            pod.metadata.uid.as_deref().unwrap_or_default(),
        );
        wait(status, "CrashLoopBackOff", &message);
        Some(due)
    }

    fn start(&self, status: &mut ContainerStatus) {
        match &self.act {
            Act::Wait { reason, message } => wait(status, reason, message),
            Act::Pull { image } => {
                let waiting =
                    status.state.as_ref().and_then(|state| state.waiting.as_ref()?.reason.as_deref());
                if matches!(waiting, Some("ErrImagePull" | "ImagePullBackOff")) {
                    wait(status, "ImagePullBackOff", &format!("Back-off pulling image {image:?}"));
                } else {
                    wait(status, "ErrImagePull", &format!("failed to pull image {image:?}: not found"));
                }
            }
            Act::Run { .. } => {
                let running = ContainerStateRunning { started_at: Some(Time(self.now)) };
                status.state = Some(ContainerState { running: Some(running), ..ContainerState::default() });
                status.started = Some(true);
                let image = self.container.image.as_deref().unwrap_or_default();
                if status.image != image {
                    (status.image, status.image_id) = (image.to_owned(), format!("simulated://{image}"));
                }
            }
        }
    }

    /// A container that runs is ready when its readiness probe has had its first delay; says when that is.
    fn make_ready(&self, status: &mut ContainerStatus) -> Option<Timestamp> {
        status.ready = is_running(status);
        if !self.waits_for_probes {
            return None;
        }
        let delay = self.container.readiness_probe.as_ref()?.initial_delay_seconds?;
        let delay = Duration::from_secs(u64::try_from(delay).ok()?);
        let ready = started(status)?.checked_add(delay).ok()?;
        status.ready &= ready <= self.now;
        (ready > self.now).then_some(ready)
    }

    fn due(&self, status: &ContainerStatus) -> Option<Timestamp> {
        let started = started(status)?;
        match &self.act {
            Act::Run { duration: Some(duration), .. } => started.checked_add(*duration).ok(),
            _ => None,
        }
    }

    fn end(&self, status: &mut ContainerStatus, running: &ContainerStateRunning) -> Option<Timestamp> {
        let Act::Run { exit_code, message, .. } = &self.act else { return None };
        let due = self.due(status)?;
        if due > self.now {
            return Some(due);
        }
        let started = running.started_at.as_ref().map_or(self.now, |started| started.0);
        terminate(status, *exit_code, due.max(started), message.clone());
        // What has ended may start again at once, with the next write.
        let is_final = self.restart == "Never" || (self.restart == "OnFailure" && *exit_code == 0);
        (!is_final).then_some(self.now)
    }
}

/// The pause before the next start of a container that ended.
fn pause(restarts: i32, ended: &ContainerStateTerminated) -> Duration {
    let times = (ended.started_at.as_ref(), ended.finished_at.as_ref());
    let ran = match times {
        (Some(started), Some(finished)) => finished.0.duration_since(started.0).unsigned_abs(),
        _ => Duration::ZERO,
    };
    match u32::try_from(restarts).unwrap_or_default() {
        0 => Duration::ZERO,
        _ if ran >= STEADY => Duration::ZERO,
        restarts => (FIRST_PAUSE * 2_u32.pow((restarts - 1).min(5))).min(LONGEST_PAUSE),
    }
}

/// A pause as Go writes it: `10s`, `1m20s`, `5m0s`.
fn spoken(pause: Duration) -> String {
    let seconds = pause.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}

fn wait(status: &mut ContainerStatus, reason: &str, message: &str) {
    let waiting = ContainerStateWaiting {
        reason: Some(reason.to_owned()),
        message: (!message.is_empty()).then(|| message.to_owned()),
    };
    status.state = Some(ContainerState { waiting: Some(waiting), ..ContainerState::default() });
    status.started = Some(false);
    status.ready = false;
}

fn started(status: &ContainerStatus) -> Option<Timestamp> {
    Some(status.state.as_ref()?.running.as_ref()?.started_at.as_ref()?.0)
}

fn terminate(status: &mut ContainerStatus, exit_code: i32, at: Timestamp, message: Option<String>) {
    let started = status.state.as_ref().and_then(|state| state.running.as_ref()?.started_at.clone());
    let terminated = ContainerStateTerminated {
        exit_code,
        message,
        reason: Some(if exit_code == 0 { "Completed" } else { "Error" }.to_owned()),
        started_at: started.or(Some(Time(at))),
        finished_at: Some(Time(at)),
        container_id: status.container_id.clone(),
        ..ContainerStateTerminated::default()
    };
    status.state = Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() });
    status.started = Some(false);
    status.ready = false;
}

/// The status of a container that has not started.
fn created(pod: &Pod, container: &Container, reason: &str) -> ContainerStatus {
    let (name, image) = (&container.name, container.image.as_deref().unwrap_or_default());
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let mut status = ContainerStatus {
        name: name.clone(),
        image: image.to_owned(),
        image_id: format!("simulated://{image}"),
        container_id: Some(format!("simulated://{uid}/{name}")),
        ..ContainerStatus::default()
    };
    wait(&mut status, reason, "");
    status
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::{Value, json};

    use super::*;

    fn pod(annotations: impl Into<Value>, spec: impl Into<Value>) -> Pod {
        let (annotations, mut spec) = (annotations.into(), spec.into());
        if spec["containers"].is_null() {
            spec["containers"] = json!([{"name": "c", "image": "web:1"}]);
        }
        kubewright_objects::from_value(json!({
            "metadata": {"name": "p", "namespace": "shop", "uid": "u", "annotations": annotations},
            "spec": spec,
        }))
        .expect("a pod")
    }

    /// Lets the pod's life go on until nothing is due before `end`, and tells what its first container said when.
    fn life(pod: &Pod, end: u64) -> Vec<(u64, String, i32)> {
        let mut containers = Containers::of(pod);
        let mut now = NOW;
        let mut changes = Vec::new();
        loop {
            let next = containers.at(pod, true, now);
            if next.statuses() != containers.statuses() {
                let status = &next.main[0];
                let state = status.state.clone().unwrap_or_default();
                let said = match (state.waiting, state.terminated) {
                    (Some(waiting), _) => waiting.reason.unwrap_or_default(),
                    (_, Some(terminated)) => format!("exit {}", terminated.exit_code),
                    _ => "running".into(),
                };
                changes.push((now.duration_since(NOW).as_secs().unsigned_abs(), said, status.restart_count));
                containers = next;
                continue;
            }
            match next.due {
                Some(due) if due <= NOW + Duration::from_secs(end) => now = due.max(now),
                _ => return changes,
            }
        }
    }

    fn at(seconds: u64, said: &str, restarts: i32) -> (u64, String, i32) {
        (seconds, said.to_owned(), restarts)
    }

    #[test]
    fn a_container_starts_and_runs_for_ever() {
        assert_eq!(life(&pod(json!({}), json!({})), 1_000_000), [at(0, "running", 0)]);
    }

    #[test]
    fn a_container_that_fails_starts_again_with_longer_and_longer_pauses() {
        let pod = pod(json!({"kubewright.dev/run-for": "5s", "kubewright.dev/exit-code": "1"}), json!({}));
        let changes = life(&pod, 80);
        let wanted = [
            at(0, "running", 0),
            at(5, "exit 1", 0),
            at(5, "running", 1),
            at(10, "exit 1", 1),
            at(10, "CrashLoopBackOff", 1),
            at(20, "running", 2),
            at(25, "exit 1", 2),
            at(25, "CrashLoopBackOff", 2),
            at(45, "running", 3),
            at(50, "exit 1", 3),
            at(50, "CrashLoopBackOff", 3),
        ];
        assert_eq!(changes, wanted);
    }

    #[test]
    fn pauses_end_at_five_minutes_and_start_anew_after_a_long_run() {
        let ended = |ran: u64| ContainerStateTerminated {
            started_at: Some(Time(NOW)),
            finished_at: Some(Time(NOW + Duration::from_secs(ran))),
            ..ContainerStateTerminated::default()
        };
        let seconds: Vec<_> = (0..9).map(|restarts| pause(restarts, &ended(1)).as_secs()).collect();
        assert_eq!(seconds, [0, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(pause(5, &ended(600)), Duration::ZERO);
        assert_eq!(spoken(Duration::from_secs(300)), "5m0s");
    }

    #[test]
    fn the_restart_policy_decides_whether_it_starts_again() {
        let ends = |code: &str, policy: &str| {
            let pod = pod(json!({"kubewright.dev/exit-code": code}), json!({"restartPolicy": policy}));
            life(&pod, 5).last().cloned()
        };
        assert_eq!(ends("0", "Never"), Some(at(0, "exit 0", 0)));
        assert_eq!(ends("3", "Never"), Some(at(0, "exit 3", 0)));
        assert_eq!(ends("0", "OnFailure"), Some(at(0, "exit 0", 0)));
        assert_eq!(ends("3", "OnFailure"), Some(at(0, "CrashLoopBackOff", 1)));
        assert_eq!(ends("0", "Always"), Some(at(0, "CrashLoopBackOff", 1)));
    }

    #[test]
    fn init_containers_go_one_after_the_other_and_sidecars_go_on() {
        let annotations =
            json!({"a.containers.kubewright.dev/run-for": "3s", "b.containers.kubewright.dev/run-for": "4s"});
        let pod = pod(
            annotations,
            json!({"initContainers": [{"name": "a"}, {"name": "proxy", "restartPolicy": "Always"}, {"name": "b"}]}),
        );
        assert_eq!(
            life(&pod, 100),
            [at(0, "PodInitializing", 0), at(3, "PodInitializing", 0), at(7, "running", 0),]
        );
    }

    #[test]
    fn a_stopped_pod_runs_nothing() {
        let pod = pod(json!({}), json!({}));
        let running = Containers::of(&pod).at(&pod, true, NOW);
        let killed = running.stopped(true, NOW);
        assert_eq!(ended(&killed.main[0]).map(|ended| ended.exit_code), Some(137));
        assert!(running.stopped(false, NOW).main.iter().all(has_ended_well));
    }
}
