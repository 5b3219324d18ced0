//! The phase of a pod (`getPhase` in `pkg/kubelet/kubelet_pods.go`).

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus};

use super::pod_containers::{PodContainer, PodContainers, Role};

/// The phase of a pod whose containers are like this. `over` says that none of them starts again; `began` that a main
/// container runs.
pub(crate) fn phase(
    pod_containers: &PodContainers,
    statuses: &[ContainerStatus],
    over: bool,
    began: bool,
) -> &'static str {
    let mut counts = Counts::default();
    for member in &pod_containers.members {
        let status = statuses.iter().find(|status| status.name == member.name());
        let state = status.and_then(|status| status.state.as_ref());
        let last = status.and_then(|status| status.last_state.as_ref());
        let last_code = last.and_then(|last| last.terminated.as_ref()).map(|terminated| terminated.exit_code);
        let now = Now::of(state, last_code);
        match member.role {
            Role::Init => counts.init(pod_containers, member, now),
            Role::Sidecar => counts.sidecar(now, status.is_some_and(|status| status.started == Some(true))),
            Role::Main => counts.main(pod_containers, member, now),
            Role::Ephemeral => {}
        }
    }
    counts.phase(over, began)
}

/// What a container does now.
#[derive(Clone, Copy)]
enum Now {
    Unknown,
    Running,
    Ended(i32),
    /// It ended with this code, and waits to start again.
    Again(i32),
    Waiting,
}

impl Now {
    fn of(state: Option<&ContainerState>, last: Option<i32>) -> Self {
        match state {
            Some(ContainerState { running: Some(_), .. }) => Self::Running,
            Some(ContainerState { terminated: Some(terminated), .. }) => Self::Ended(terminated.exit_code),
            Some(ContainerState { waiting: Some(_), .. }) => last.map_or(Self::Waiting, Self::Again),
            _ => Self::Unknown,
        }
    }
}

#[derive(Default)]
struct Counts {
    pending_init: u32,
    pending_sidecars: u32,
    failed_for_good: u32,
    unknown: u32,
    running: u32,
    waiting: u32,
    stopped: u32,
    stopped_for_good: u32,
    succeeded: u32,
}

impl Counts {
    fn init(&mut self, pod_containers: &PodContainers, member: &PodContainer, now: Now) {
        match now {
            Now::Unknown | Now::Running | Now::Waiting => self.pending_init += 1,
            Now::Ended(code) | Now::Again(code) if code != 0 => {
                self.failed_for_good += u32::from(!pod_containers.restarts_after(member, code));
            }
            Now::Ended(_) | Now::Again(_) => {}
        }
    }

    fn sidecar(&mut self, now: Now, started: bool) {
        match now {
            Now::Running => {
                self.pending_sidecars += u32::from(!started);
                self.running += 1;
            }
            Now::Waiting => {
                self.pending_sidecars += 1;
                self.waiting += 1;
            }
            Now::Unknown => self.unknown += 1,
            Now::Ended(_) | Now::Again(_) => {}
        }
    }

    fn main(&mut self, pod_containers: &PodContainers, member: &PodContainer, now: Now) {
        match now {
            Now::Unknown => self.unknown += 1,
            Now::Running => self.running += 1,
            Now::Waiting => self.waiting += 1,
            Now::Ended(code) | Now::Again(code) => {
                self.stopped += 1;
                self.stopped_for_good += u32::from(!pod_containers.restarts_after(member, code));
                self.succeeded += u32::from(code == 0 && matches!(now, Now::Ended(_)));
            }
        }
    }

    fn phase(&self, over: bool, began: bool) -> &'static str {
        if self.failed_for_good > 0 {
            return "Failed";
        }
        let initializes = self.pending_init > 0 || (self.pending_sidecars > 0 && !began);
        if initializes || self.waiting > 0 || self.unknown > 0 {
            return "Pending";
        }
        let outcome = if self.stopped == self.succeeded { "Succeeded" } else { "Failed" };
        match (self.running, self.stopped) {
            (1.., _) => "Running",
            (0, 0) => "Pending",
            (0, _) if over || self.stopped == self.stopped_for_good => outcome,
            (0, _) => "Running",
        }
    }
}
