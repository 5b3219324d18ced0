//! How the containers of a pod are, as its worker knows it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState as ApiState, ContainerStateTerminated, ContainerStatus, Pod,
};

use super::backoff::Backoff;
use super::pod_containers::{PodContainers, Role};
use crate::container::{Exit, Identity};

/// The scheme of the ids of containers.
pub(crate) const SCHEME: &str = "kubewright://";

/// A container that was created: what stays the same until it has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) image: String,
    pub(crate) image_id: String,
    pub(crate) started_at: Timestamp,
    pub(crate) identity: Identity,
}

/// What the probes of a running container have said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Probed {
    pub(crate) startup: Option<bool>,
    pub(crate) liveness: Option<bool>,
    pub(crate) readiness: Option<bool>,
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) id: Option<String>,
    pub(crate) image: String,
    pub(crate) image_id: String,
    pub(crate) code: i32,
    pub(crate) reason: String,
    pub(crate) message: Option<String>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
    /// Whether a probe had it ended: whether to wait before it starts again depends on its run before, at first.
    pub(crate) by_probe: bool,
}

/// Where a container is in its life.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) enum Stage {
    /// It was not created yet.
    #[default]
    Absent,
    /// It is being created: what it was before.
    Starting(Option<Ended>),
    /// It runs.
    Running {
        instance: Instance,
        /// Whether its `postStart` hook is through.
        hooked: bool,
        probed: Probed,
        /// Whether it is being ended, and a probe is why.
        ending: Option<ByProbe>,
    },
    /// It has ended.
    Ended(Ended),
}

/// Whether a probe is why a container is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByProbe(pub(crate) bool);

/// Why a container does not start, and until when nothing is tried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waits {
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) until: Timestamp,
}

/// How a container is.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct ContainerState {
    pub(crate) stage: Stage,
    /// How often it was created.
    pub(crate) runs: i32,
    /// How its run before ended.
    pub(crate) last: Option<Ended>,
    pub(crate) waits: Option<Waits>,
    pub(crate) backoff: Backoff,
    /// The wait after an image was not found.
    pub(crate) image_backoff: Backoff,
    /// When the image was not found last, and what was said.
    pub(crate) image_missing: Option<(Timestamp, String)>,
}

impl ContainerState {
    /// How it ended, when it has.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        match &self.stage {
            Stage::Ended(ended) | Stage::Starting(Some(ended)) => Some(ended),
            _ => None,
        }
    }

    pub(crate) fn restarts(&self) -> i32 {
        (self.runs - 1).max(0)
    }

    /// It runs as far as others can see: a `postStart` hook is part of the start.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running { hooked: true, .. })
    }

    /// A process of it is there.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.stage, Stage::Running { .. })
    }

    /// Being created, or its `postStart` hook runs.
    pub(crate) fn is_starting(&self) -> bool {
        matches!(self.stage, Stage::Starting(_) | Stage::Running { hooked: false, .. })
    }
}

/// Phase of a pod's worker (`PodWorkerState` in `pkg/kubelet/pod_workers.go`).
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) enum PodWorkerState {
    /// Its volumes are not there yet.
    #[default]
    Preparing,
    /// Its containers start, run, and start again.
    Running,
    /// Its containers are being ended.
    Terminating,
    /// They have ended, and none starts again.
    Terminated,
}

/// Why the kubelet itself ended a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodFailure {
    pub(crate) reason: String,
    pub(crate) message: String,
    /// It never began: it was not admitted.
    pub(crate) rejected: bool,
}

/// How a pod is.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct PodState {
    pub(crate) containers: BTreeMap<String, ContainerState>,
    pub(crate) worker_state: PodWorkerState,
    pub(crate) failure: Option<PodFailure>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) started_at: Option<Timestamp>,
    /// All its containers are to start anew, once they have ended.
    pub(crate) restarting_all: bool,
}

impl PodState {
    /// The state of a pod that this kubelet has not seen before: new, or of a kubelet that has ended with its containers.
    pub(crate) fn recovered(pod: &Pod, pod_containers: &PodContainers) -> Self {
        let mut state = Self::default();
        let Some(status) = &pod.status else { return state };
        state.started_at = status.start_time.as_ref().map(|time| time.0);
        let lists = [
            &status.init_container_statuses,
            &status.container_statuses,
            &status.ephemeral_container_statuses,
        ];
        for status in lists.into_iter().flatten().flatten() {
            let role = pod_containers.member(&status.name).map(|member| member.role);
            state.containers.insert(status.name.clone(), recovered(status, role));
        }
        // A pod that goes on does so from the start.
        let goes_on = pod_containers.main().any(|member| {
            state.container(member.name()).is_none_or(|container| match container.ended() {
                Some(ended) => pod_containers.starts_again(member, ended.code),
                None => true,
            })
        });
        if goes_on {
            let initial: Vec<_> = pod_containers.initial().map(|member| member.name().to_owned()).collect();
            for name in initial {
                if let Some(container) = state.containers.get_mut(&name)
                    && let Stage::Ended(ended) = std::mem::take(&mut container.stage)
                {
                    container.last = Some(ended);
                }
            }
        }
        state
    }

    pub(crate) fn container(&self, name: &str) -> Option<&ContainerState> {
        self.containers.get(name)
    }

    pub(crate) fn container_mut(&mut self, name: &str) -> &mut ContainerState {
        self.containers.entry(name.to_owned()).or_default()
    }

    /// Notes how a container ended.
    pub(crate) fn exited(&mut self, name: &str, exit: &Exit, message: Option<String>, at: Timestamp) {
        let container = self.container_mut(name);
        let Stage::Running { instance, ending, .. } = &container.stage else { return };
        let reason = match exit {
            Exit { out_of_memory: true, .. } => "OOMKilled",
            Exit { code: 0, .. } => "Completed",
            _ => "Error",
        };
        let ended = Ended {
            id: Some(instance.id.clone()),
            image: instance.image.clone(),
            image_id: instance.image_id.clone(),
            code: exit.code,
            reason: reason.to_owned(),
            message: message.filter(|message| !message.is_empty()),
            started_at: Some(instance.started_at),
            finished_at: Some(at),
            by_probe: *ending == Some(ByProbe(true)),
        };
        container.stage = Stage::Ended(ended);
    }

    /// Whether any container has a process, or is about to get one.
    pub(crate) fn is_busy(&self) -> bool {
        self.containers
            .values()
            .any(|container| container.is_alive() || matches!(container.stage, Stage::Starting(_)))
    }

    /// Has all containers start anew: what they were is their last run.
    pub(crate) fn reset(&mut self) {
        self.restarting_all = false;
        for container in self.containers.values_mut() {
            if let Stage::Ended(mut ended) = std::mem::take(&mut container.stage) {
                ended.reason = "RestartingAllContainers".to_owned();
                ended.message =
                    Some("The container is removed because RestartAllContainers in place".to_owned());
                ended.code = 137;
                container.last = Some(ended);
            }
            container.waits = None;
        }
    }
}

/// What is known of a container whose kubelet has ended: if it ran, it is gone, and nobody saw how it ended.
fn recovered(status: &ContainerStatus, role: Option<Role>) -> ContainerState {
    let terminated = |state: &Option<ApiState>| state.as_ref().and_then(|state| state.terminated.clone());
    let ran = status.state.as_ref().is_some_and(|state| state.running.is_some());
    let of = |terminated: ContainerStateTerminated| Ended {
        id: terminated.container_id.map(|id| id.trim_start_matches(SCHEME).to_owned()),
        image: status.image.clone(),
        image_id: status.image_id.clone(),
        code: terminated.exit_code,
        reason: terminated.reason.unwrap_or_default(),
        message: terminated.message,
        started_at: terminated.started_at.map(|time| time.0),
        finished_at: terminated.finished_at.map(|time| time.0),
        by_probe: false,
    };
    let last = terminated(&status.last_state).map(of);
    let was_created = ran || last.is_some() || terminated(&status.state).is_some();
    let stage = match terminated(&status.state) {
        Some(ended) => Stage::Ended(of(ended)),
        None if ran => Stage::Ended(Ended {
            id: None,
            image: status.image.clone(),
            image_id: status.image_id.clone(),
            code: 137,
            reason: "ContainerStatusUnknown".to_owned(),
            message: Some("The container could not be located when the pod was terminated".to_owned()),
            started_at: None,
            finished_at: None,
            by_probe: false,
        }),
        None => match (&last, role) {
            // It waited to be started again.
            (Some(last), Some(_)) => Stage::Ended(last.clone()),
            _ => Stage::Absent,
        },
    };
    ContainerState {
        stage,
        runs: if was_created { status.restart_count + 1 } else { 0 },
        last,
        ..ContainerState::default()
    }
}
