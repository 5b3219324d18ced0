//! What a worker does: it starts tasks that report back.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::decision::Action;
use super::super::ending::{self, Ending, before, grace_after_probe};
use super::super::launch::Launch;
use super::super::pod_containers::PodContainer;
use super::super::state::{ByProbe, PodFailure, PodWorkerState, Stage, Waits};
use super::{PodWorker, Report};
use crate::container::Signal;
use crate::events::EventType;
use crate::pod::prepare::follows_changes;
use crate::probe::ProbeTarget;

impl PodWorker {
    pub(super) fn carry_out(&mut self, action: Action, now: Timestamp) {
        match action {
            Action::Start { name, after } => self.start(&name, after, now),
            Action::BackOff { name, wait, until } => self.back_off(&name, wait, until),
            Action::End { name, probe, message } => {
                let Some(member) = self.pod_containers.member(&name).cloned() else { return };
                let grace = grace_after_probe(&self.pod, &member, probe);
                self.end(&member, grace, Some(message), true, false);
            }
            Action::RestartAll => {
                self.state.restarting_all = true;
                self.end_all(false);
            }
            Action::Stop => self.begin_to_end(),
        }
    }

    fn start(&mut self, name: &str, after: Option<Timestamp>, now: Timestamp) {
        let (Some(member), Some(prepared), Some(address)) =
            (self.pod_containers.member(name).cloned(), self.prepared.clone(), self.state.address)
        else {
            return;
        };
        let container = self.state.container_mut(name);
        if let Some(after) = after {
            container.backoff.next(after, now);
        }
        let ended = match std::mem::take(&mut container.stage) {
            Stage::Ended(ended) => Some(ended),
            _ => None,
        };
        let fresh = container.runs == 0 && container.waits.is_none();
        container.stage = Stage::Starting(ended);
        let mut launch = Launch {
            pod: Arc::clone(&self.pod),
            member,
            run: u32::try_from(container.runs).unwrap_or_default(),
            address,
            prepared,
            runtime: Arc::clone(&self.node.runtime),
            preparer: self.node.preparer.clone(),
            events: self.node.events.clone(),
        };
        let (reporter, name) = (self.reporter.clone(), name.to_owned());
        tokio::spawn(async move {
            if !fresh {
                // What was not there, or has changed, may be there by now.
                let (pod, before) = (Arc::clone(&launch.pod), Some(Arc::clone(&launch.prepared)));
                if let Ok(prepared) = launch.preparer.prepare(pod, address, before).await {
                    launch.prepared = Arc::new(prepared);
                }
            }
            let result = Box::new(launch.start().await);
            let _ = reporter.send(Report::Launched { name, result });
        });
    }

    fn back_off(&mut self, name: &str, wait: Duration, until: Timestamp) {
        let pod = self.pod_name();
        let Some(member) = self.pod_containers.member(name).cloned() else { return };
        self.node.events.container(
            &self.pod,
            &member,
            EventType::Warning,
            "BackOff",
            format!("Back-off restarting failed container {name} in pod {pod}"),
        );
        self.state.container_mut(name).waits = Some(Waits {
            reason: "CrashLoopBackOff".to_owned(),
            message: format!("back-off {} restarting failed container={name} pod={pod}", go_duration(wait)),
            until,
        });
    }

    /// `name_namespace(uid)`, as messages have it.
    pub(super) fn pod_name(&self) -> String {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let metadata = &self.pod.metadata;
        format!("{}_{}({})", text(&metadata.name), text(&metadata.namespace), text(&metadata.uid))
    }

    pub(super) fn target(&self, member: &PodContainer) -> Option<ProbeTarget> {
        let live = self.live.get(member.name())?;
        Some(ProbeTarget {
            spec: Arc::new(member.container.clone()),
            container: Arc::clone(&live.container),
            address: self.state.address?,
            pod: self.pod_name().into(),
        })
    }

    /// The volumes of the pod are made, or made anew, if it is time; when it will be.
    pub(super) fn prepare_when_due(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.preparing {
            return None;
        }
        let due = self.prepare_at?;
        if due > now {
            return Some(due);
        }
        let (preparer, pod) = (self.node.preparer.clone(), Arc::clone(&self.pod));
        let (before, reporter) = (self.prepared.clone(), self.reporter.clone());
        let address = self.state.address?;
        self.preparing = true;
        tokio::spawn(async move {
            let prepared = preparer.prepare(pod, address, before).await.map(Arc::new);
            let _ = reporter.send(Report::Prepared(prepared));
        });
        None
    }

    pub(super) fn prepared(&mut self, result: Result<Arc<super::Prepared>, Vec<String>>) {
        self.preparing = false;
        let now = self.now();
        match result {
            Ok(prepared) => {
                let follows = follows_changes(&prepared);
                self.prepared = Some(prepared);
                self.prepare_at = follows.then(|| later(now, super::REFRESH));
                self.prepare_wait = Duration::ZERO;
                if self.state.worker_state == PodWorkerState::Preparing {
                    self.state.worker_state = PodWorkerState::Running;
                }
            }
            Err(problems) => {
                for problem in problems {
                    self.node.events.pod(&self.pod, EventType::Warning, "FailedMount", problem);
                }
                // `durationBeforeRetry` in `pkg/util/goroutinemap/exponentialbackoff`.
                self.prepare_wait =
                    (self.prepare_wait * 2).clamp(Duration::from_millis(500), Duration::from_secs(122));
                self.prepare_at = Some(later(now, self.prepare_wait));
            }
        }
    }

    pub(super) fn exceed_deadline(&mut self) {
        let message = "Pod was active on the node longer than the specified deadline";
        self.node.events.pod(&self.pod, EventType::Normal, "DeadlineExceeded", message);
        self.state.failure = Some(PodFailure {
            reason: "DeadlineExceeded".to_owned(),
            message: message.to_owned(),
            rejected: false,
        });
        self.begin_to_end();
    }

    /// The pod goes: all that runs is ended.
    pub(super) fn begin_to_end(&mut self) {
        if matches!(self.state.worker_state, PodWorkerState::Terminating | PodWorkerState::Terminated) {
            return;
        }
        self.state.worker_state = PodWorkerState::Terminating;
        self.end_all(true);
    }

    fn end_all(&mut self, in_order: bool) {
        let members: Vec<_> = self.pod_containers.members.clone();
        for member in &members {
            self.end(member, self.grace(), None, false, in_order);
        }
    }

    /// Has a running container end. `in_order` has a sidecar wait until it is its turn.
    pub(super) fn end(
        &mut self,
        member: &PodContainer,
        grace: Duration,
        message: Option<String>,
        by_probe: bool,
        in_order: bool,
    ) {
        let name = member.name();
        let Some(target) = self.target(member) else { return };
        let others = if in_order { before(&self.pod_containers, member) } else { Vec::new() };
        let others: Vec<CancellationToken> =
            others.iter().filter_map(|other| Some(self.live.get(*other)?.gone.clone())).collect();
        let Some(live) = self.live.get_mut(name) else { return };
        if let Some(under_way) = &live.grace {
            let _ = under_way.send_if_modified(|now| {
                let shorter = grace < *now;
                *now = grace.min(*now);
                shorter
            });
            return;
        }
        let (sender, receiver) = watch::channel(grace);
        live.grace = Some(sender);
        // Its probes have nothing to say any more; a hook of its start may be under way.
        live.scope.cancel();
        let signal = live.stop_signal.as_deref().and_then(ending::signal).unwrap_or(Signal::TERMINATE);
        if let Stage::Running { ending, .. } = &mut self.state.container_mut(name).stage {
            *ending = Some(ByProbe(by_probe));
        }
        let events = self.node.events.clone();
        let message = message.unwrap_or_else(|| format!("Stopping container {name}"));
        events.container(&self.pod, member, EventType::Normal, "Killing", message);
        let (pod, member) = (Arc::clone(&self.pod), member.clone());
        let ending = Ending { target, signal, grace: receiver, before: others };
        tokio::spawn(ending.run(move || {
            events.container(&pod, &member, EventType::Warning, "FailedPreStopHook", "PreStopHook failed");
        }));
    }

    /// The pod was deleted, or deleted again with less time.
    pub(super) fn shorten_grace(&mut self) {
        let grace = self.grace();
        for live in self.live.values() {
            if let Some(under_way) = &live.grace {
                let _ = under_way.send_if_modified(|now| {
                    let shorter = grace < *now;
                    *now = grace.min(*now);
                    shorter
                });
            }
        }
    }
}

pub(super) fn later(time: Timestamp, wait: Duration) -> Timestamp {
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// Whole seconds as Go's durations are told.
fn go_duration(wait: Duration) -> String {
    match (wait.as_secs() / 60, wait.as_secs() % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}
