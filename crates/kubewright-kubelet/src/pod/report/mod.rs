//! What a pod's status says: a pure function of the pod and of how its containers are
//! (`generateAPIPodStatus` and `convertToAPIContainerStatuses` in `pkg/kubelet/kubelet_pods.go`).

use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState as ApiState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, ContainerUser, HostIP, LinuxContainerUser, Pod, PodIP, PodStatus, VolumeMountStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::conditions::{Facts, OWN, conditions, seconds};
use super::phase::phase;
use super::pod_containers::{PodContainer, PodContainers, Role};
use super::state::{ContainerState, Ended, Instance, PodState, PodWorkerState, Probed, SCHEME, Stage};

/// The status of a pod at `now`; conditions that are not the kubelet's are left out.
pub(crate) fn status(
    pod: &Pod,
    pod_containers: &PodContainers,
    state: &PodState,
    host: IpAddr,
    now: Timestamp,
) -> PodStatus {
    let before = pod.status.clone().unwrap_or_default();
    if let Some(failure) = state.failure.as_ref().filter(|failure| failure.rejected) {
        return PodStatus {
            phase: Some("Failed".to_owned()),
            reason: Some(failure.reason.clone()),
            message: Some(failure.message.clone()),
            start_time: state.started_at.map(|time| Time(seconds(time))),
            observed_generation: pod.metadata.generation,
            ..PodStatus::default()
        };
    }
    let waiting = if pod_containers.has_initial() { "PodInitializing" } else { "ContainerCreating" };
    let of = |roles: &[Role]| -> Vec<ContainerStatus> {
        pod_containers
            .of_role(roles)
            .map(|member| container(pod_containers, state, member, waiting))
            .collect()
    };
    let (init, main, ephemeral) =
        (of(&[Role::Init, Role::Sidecar]), of(&[Role::Main]), of(&[Role::Ephemeral]));
    let all: Vec<_> = init.iter().chain(&main).cloned().collect();
    let began = pod_containers
        .main()
        .any(|member| state.container(member.name()).is_some_and(ContainerState::is_running));
    let over = state.worker_state == PodWorkerState::Terminated;
    let mut phase = phase(pod_containers, &all, over, began).to_owned();
    let before_phase = before.phase.clone().unwrap_or_default();
    let is_final = |phase: &str| matches!(phase, "Succeeded" | "Failed");
    if is_final(&before_phase) {
        phase = before_phase.clone();
    } else if is_final(&phase) && state.is_busy() {
        // What is being ended is not over.
        phase = if before_phase.is_empty() { "Pending".to_owned() } else { before_phase.clone() };
    }
    if over && !is_final(&phase) {
        // It ended before it had done anything, or was not to go on (`TerminatePod`).
        phase = "Failed".to_owned();
    }
    let (mut reason, mut message) = (None, None);
    if phase == before_phase {
        (reason, message) = (before.reason.clone(), before.message.clone());
    }
    if let Some(failure) = &state.failure {
        phase = "Failed".to_owned();
        (reason, message) = (Some(failure.reason.clone()), Some(failure.message.clone()));
    }
    let facts = Facts {
        pod,
        pod_containers,
        statuses: &all,
        phase: &phase,
        has_sandbox: matches!(state.worker_state, PodWorkerState::Running | PodWorkerState::Terminating),
        restarting_all: state.restarting_all,
    };
    let conditions = conditions(&facts, now);
    let address = state.address.map(|address| address.to_string());
    PodStatus {
        conditions: Some(conditions),
        pod_ips: address.clone().map(|ip| vec![PodIP { ip }]),
        pod_ip: address,
        host_ip: Some(host.to_string()),
        host_ips: Some(vec![HostIP { ip: host.to_string() }]),
        init_container_statuses: (!init.is_empty()).then_some(init),
        container_statuses: Some(main),
        ephemeral_container_statuses: (!ephemeral.is_empty()).then_some(ephemeral),
        observed_generation: pod.metadata.generation,
        phase: Some(phase),
        reason,
        message,
        start_time: state.started_at.map(|time| Time(seconds(time))),
        ..PodStatus::default()
    }
}

/// Whether a status says something else than the pod's; what the kubelet does not set is not looked at.
pub(crate) fn differs(pod: &Pod, new: &PodStatus) -> bool {
    let empty = PodStatus::default();
    let old = pod.status.as_ref().unwrap_or(&empty);
    let own = |status: &PodStatus| {
        let mut own: Vec<_> = status.conditions.iter().flatten().cloned().collect();
        own.retain(|condition| OWN.contains(&condition.type_.as_str()));
        own.sort_by(|a, b| a.type_.cmp(&b.type_));
        own
    };
    let lists = |status: &PodStatus| {
        let list = |list: &Option<Vec<ContainerStatus>>| list.clone().unwrap_or_default();
        [
            list(&status.init_container_statuses),
            list(&status.container_statuses),
            list(&status.ephemeral_container_statuses),
        ]
    };
    let words = |status: &PodStatus| {
        [&status.phase, &status.reason, &status.message, &status.pod_ip, &status.host_ip]
            .map(|word| word.clone().unwrap_or_default())
    };
    words(old) != words(new)
        || old.start_time != new.start_time
        || old.observed_generation != new.observed_generation
        || lists(old) != lists(new)
        || own(old) != own(new)
}

fn container(
    pod_containers: &PodContainers,
    state: &PodState,
    member: &PodContainer,
    waiting: &str,
) -> ContainerStatus {
    let unknown = ContainerState::default();
    let known = state.container(member.name()).unwrap_or(&unknown);
    let mut status = ContainerStatus {
        name: member.name().to_owned(),
        image: member.container.image.clone().unwrap_or_default(),
        restart_count: known.restarts(),
        last_state: Some(last_state(known.last.as_ref())),
        started: Some(false),
        volume_mounts: volume_mounts(member),
        ..ContainerStatus::default()
    };
    match &known.stage {
        Stage::Running { instance, hooked: true, probed, .. } => {
            running(&mut status, member, instance, *probed);
        }
        Stage::Absent | Stage::Starting(None) | Stage::Running { .. } => {
            let (reason, message) = match &known.waits {
                Some(waits) => (waits.reason.clone(), Some(waits.message.clone())),
                None => (waiting.to_owned(), None),
            };
            status.state = Some(waits(reason, message));
        }
        Stage::Starting(Some(ended)) | Stage::Ended(ended) => {
            has_ended(&mut status, ended);
            let again = pod_containers.starts_again(member, ended.code)
                || (member.role == Role::Sidecar && state.worker_state == PodWorkerState::Running);
            match &known.waits {
                Some(waiting)
                    if again
                        && state.worker_state != PodWorkerState::Terminated
                        && !is_done(member, ended) =>
                {
                    status.last_state = status.state.take();
                    status.state = Some(waits(waiting.reason.clone(), Some(waiting.message.clone())));
                }
                _ => {}
            }
            if member.role == Role::Init && ended.code == 0 {
                status.ready = true;
            }
        }
    }
    if known.runs > 0 {
        status.resources = member.container.resources.clone();
        status.allocated_resources =
            member.container.resources.as_ref().and_then(|resources| resources.requests.clone());
    }
    if member.role == Role::Ephemeral {
        status.started = None;
    }
    status
}

/// An init container that went well never runs again.
fn is_done(member: &PodContainer, ended: &Ended) -> bool {
    member.role == Role::Init && ended.code == 0
}

fn running(status: &mut ContainerStatus, member: &PodContainer, instance: &Instance, probed: Probed) {
    let container = &member.container;
    let started = container.startup_probe.is_none() || probed.startup == Some(true);
    status.started = Some(started);
    let serves = member.role != Role::Init && member.role != Role::Ephemeral;
    status.ready =
        serves && started && (container.readiness_probe.is_none() || probed.readiness == Some(true));
    status.state = Some(ApiState {
        running: Some(ContainerStateRunning { started_at: Some(Time(seconds(instance.started_at))) }),
        ..ApiState::default()
    });
    status.container_id = Some(format!("{SCHEME}{}", instance.id));
    status.image.clone_from(&instance.image);
    status.image_id.clone_from(&instance.image_id);
    let identity = &instance.identity;
    let mut groups: Vec<_> = identity.groups.iter().copied().map(i64::from).collect();
    if !groups.contains(&i64::from(identity.gid)) {
        groups.insert(0, i64::from(identity.gid));
    }
    status.user = Some(ContainerUser {
        linux: Some(LinuxContainerUser {
            uid: i64::from(identity.uid),
            gid: i64::from(identity.gid),
            supplemental_groups: Some(groups),
        }),
    });
}

fn has_ended(status: &mut ContainerStatus, ended: &Ended) {
    status.state = Some(last_state(Some(ended)));
    status.container_id = ended.id.as_ref().map(|id| format!("{SCHEME}{id}"));
    status.image.clone_from(&ended.image);
    status.image_id.clone_from(&ended.image_id);
}

fn last_state(ended: Option<&Ended>) -> ApiState {
    let Some(ended) = ended else { return ApiState::default() };
    let time = |time: Option<Timestamp>| time.map(|time| Time(seconds(time)));
    ApiState {
        terminated: Some(ContainerStateTerminated {
            container_id: ended.id.as_ref().map(|id| format!("{SCHEME}{id}")),
            exit_code: ended.code,
            finished_at: time(ended.finished_at),
            message: ended.message.clone(),
            reason: Some(ended.reason.clone()).filter(|reason| !reason.is_empty()),
            signal: None,
            started_at: time(ended.started_at),
        }),
        ..ApiState::default()
    }
}

fn waits(reason: String, message: Option<String>) -> ApiState {
    let message = message.filter(|message| !message.is_empty());
    ApiState { waiting: Some(ContainerStateWaiting { reason: Some(reason), message }), ..ApiState::default() }
}

fn volume_mounts(member: &PodContainer) -> Option<Vec<VolumeMountStatus>> {
    let mounts: Vec<_> = member
        .container
        .volume_mounts
        .iter()
        .flatten()
        .map(|mount| VolumeMountStatus {
            name: mount.name.clone(),
            mount_path: mount.mount_path.clone(),
            read_only: mount.read_only.filter(|read_only| *read_only),
            recursive_read_only: (mount.read_only == Some(true)).then(|| "Disabled".to_owned()),
            ..VolumeMountStatus::default()
        })
        .collect();
    (!mounts.is_empty()).then_some(mounts)
}

#[cfg(test)]
mod tests;
