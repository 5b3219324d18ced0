//! What happens next to a pod's containers: a pure function of what they are to be, how they are, and the time
//! (`computePodActions`, `computeInitContainerActions` and `doBackOff` in `pkg/kubelet/kuberuntime`).

use jiff::Timestamp;

use super::pod_containers::{PodContainer, PodContainers, Role};
use super::state::{ContainerState, Ended, PodState, Stage};

/// Which probe failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailedProbe {
    Startup,
    Liveness,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Create and start a container; when it has failed before, so long ago.
    Start { name: String, after: Option<Timestamp> },
    /// It crashes over and over: say so, and do not start it before this time.
    BackOff { name: String, wait: std::time::Duration, until: Timestamp },
    /// End a running container, because a probe says that it does not work.
    End { name: String, probe: FailedProbe, message: String },
    /// End all containers to start them anew.
    RestartAll,
    /// Nothing is left to do: end what still runs, and the pod is over.
    Stop,
}

/// What is to be done now, and when to look again if nothing happens before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Decision {
    pub(crate) actions: Vec<Action>,
    pub(crate) wake: Option<Timestamp>,
}

/// Decides for a pod whose volumes are there and that is not being ended.
pub(crate) fn decide(pod_containers: &PodContainers, state: &PodState, now: Timestamp) -> Decision {
    if state.restarting_all {
        return Decision::default();
    }
    if restarts_all(pod_containers, state) {
        return Decision { actions: vec![Action::RestartAll], wake: None };
    }
    let mut plan = PodActions::default();
    for member in pod_containers.of_role(&[Role::Ephemeral]) {
        if is_absent(state.container(member.name())) {
            plan.start.push(member);
        }
    }
    match plan.initial(pod_containers, state) {
        Initial::Failed => return Decision { actions: vec![Action::Stop], wake: None },
        Initial::Running => {}
        Initial::Done => {
            if !plan.main(pod_containers, state) {
                return Decision { actions: vec![Action::Stop], wake: None };
            }
        }
    }
    plan.decision(state, now)
}

/// How far the init containers are.
enum Initial {
    Running,
    Done,
    Failed,
}

/// What is to be started and ended, before it is asked whether it is time.
#[derive(Default)]
struct PodActions<'a> {
    start: Vec<&'a PodContainer>,
    end: Vec<Action>,
}

impl<'a> PodActions<'a> {
    /// From the last init container backwards: the first that was created says how far the pod is; of those before it,
    /// sidecars are kept running.
    fn initial(&mut self, pod_containers: &'a PodContainers, state: &PodState) -> Initial {
        let members: Vec<&'a PodContainer> = pod_containers.initial().collect();
        let mut initialized = pod_containers.main().any(|member| {
            state.container(member.name()).is_some_and(|main| main.is_alive() || main.is_starting())
        });
        if members.is_empty() {
            return Initial::Done;
        }
        let mut passed = initialized;
        let mut start = Vec::new();
        for (index, &member) in members.iter().enumerate().rev() {
            let sidecar = member.role == Role::Sidecar;
            let is_last = index + 1 == members.len();
            let mut done = |start: &mut Vec<&'a PodContainer>| {
                if is_last {
                    initialized = true;
                } else if !passed {
                    start.push(members[index + 1]);
                }
            };
            match state.container(member.name()).filter(|container| !is_absent(Some(container))) {
                None => {
                    if passed && sidecar {
                        start.push(member);
                    }
                    continue;
                }
                Some(_) if passed && !sidecar => continue,
                Some(ContainerState { stage: Stage::Running { hooked, probed, ending, .. }, .. }) => {
                    let started = member.container.startup_probe.is_none() || probed.startup == Some(true);
                    if sidecar && *hooked && started {
                        done(&mut start);
                    }
                    if sidecar && ending.is_none() {
                        self.end_unhealthy(member, "Init container", *probed, None);
                    }
                }
                Some(ContainerState { stage: Stage::Ended(_), .. }) if sidecar => start.push(member),
                Some(ContainerState { stage: Stage::Ended(ended), .. }) if ended.code != 0 => {
                    if !pod_containers.starts_again(member, ended.code) {
                        return Initial::Failed;
                    }
                    start.push(member);
                }
                Some(ContainerState { stage: Stage::Ended(_), .. }) => done(&mut start),
                Some(_) => {}
            }
            passed = true;
        }
        if !passed {
            start.push(members[0]);
        }
        start.reverse();
        self.start.extend(start);
        if initialized { Initial::Done } else { Initial::Running }
    }

    /// Whether any of the main containers is kept or started.
    fn main(&mut self, pod_containers: &'a PodContainers, state: &PodState) -> bool {
        let mut kept = false;
        for member in pod_containers.main() {
            match state.container(member.name()).map(|container| &container.stage) {
                None | Some(Stage::Absent) => {
                    kept = true;
                    self.start.push(member);
                }
                Some(Stage::Starting(_)) => kept = true,
                Some(Stage::Running { probed, ending, .. }) => {
                    kept = true;
                    if ending.is_none() {
                        let again = pod_containers.restarts_after_probe(member);
                        self.end_unhealthy(member, "Container", *probed, Some(again));
                    }
                }
                Some(Stage::Ended(ended)) => {
                    if pod_containers.starts_again(member, ended.code)
                        || (ended.by_probe && pod_containers.restarts_after_probe(member))
                    {
                        kept = true;
                        self.start.push(member);
                    }
                }
            }
        }
        kept
    }

    fn end_unhealthy(
        &mut self,
        member: &PodContainer,
        what: &str,
        probed: super::state::Probed,
        again: Option<bool>,
    ) {
        let (probe, word) = match (probed.liveness, probed.startup) {
            (Some(false), _) => (FailedProbe::Liveness, "liveness"),
            (_, Some(false)) => (FailedProbe::Startup, "startup"),
            _ => return,
        };
        let name = member.name();
        let tail = if again == Some(true) { ", will be restarted" } else { "" };
        let message = format!("{what} {name} failed {word} probe{tail}");
        self.end.push(Action::End { name: name.to_owned(), probe, message });
    }

    /// One container starts at a time, and only when it is not too early for it.
    fn decision(self, state: &PodState, now: Timestamp) -> Decision {
        let mut decision = Decision { actions: self.end, wake: None };
        let mut is_free = !state.containers.values().any(ContainerState::is_starting);
        let mut until = |wake: Timestamp| {
            decision.wake = Some(decision.wake.map_or(wake, |earlier| earlier.min(wake)));
        };
        for member in self.start {
            let container = state.container(member.name());
            if let Some(waits) = container.and_then(|container| container.waits.as_ref())
                && waits.until > now
            {
                until(waits.until);
                continue;
            }
            let after = container.and_then(since);
            let waits =
                container.zip(after).and_then(|(container, after)| container.backoff.wait(after, now));
            match waits {
                Some((end, wait)) => {
                    until(end);
                    let name = member.name().to_owned();
                    decision.actions.push(Action::BackOff { name, wait, until: end });
                }
                None if is_free => {
                    is_free = false;
                    decision.actions.push(Action::Start { name: member.name().to_owned(), after });
                }
                None => {}
            }
        }
        decision
    }
}

/// From when on the wait before its next start is counted: its end; when a probe had it ended, at first the end before, as
/// the kubelet looks at what it knew when it ended it.
fn since(container: &ContainerState) -> Option<Timestamp> {
    match &container.stage {
        Stage::Ended(Ended { by_probe: true, .. }) if container.waits.is_none() => {
            container.last.as_ref()?.finished_at
        }
        Stage::Ended(ended) => ended.finished_at,
        _ => None,
    }
}

fn is_absent(container: Option<&ContainerState>) -> bool {
    container.is_none_or(|container| container.stage == Stage::Absent)
}

/// Whether a container ended in a way that has all start anew.
fn restarts_all(pod_containers: &PodContainers, state: &PodState) -> bool {
    pod_containers.of_role(&[Role::Init, Role::Sidecar, Role::Main]).any(|member| {
        let container = state.container(member.name());
        match container.map(|container| &container.stage) {
            Some(Stage::Ended(ended)) => pod_containers.restarts_all(member, ended.code),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests;
