//! What a worker learns from the tasks that it has started.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::super::ending::grace_of_pod;
use super::super::hook;
use super::super::launch::{Launched, Refused};
use super::super::pod_containers::{PodContainer, Role};
use super::super::state::{Ended, Instance, PodWorkerState, Probed, Stage, Waits};
use super::carry_out::later;
use super::{Live, PodWorker, Report};
use crate::container::Exit;
use crate::events::{EventRecorder, EventType};
use crate::images::{Missing, blocking};
use crate::inputs::termination;
use crate::probe::{ProbeKind, Rounds, Sink};

/// How long until what could not be created is tried again (`backOffPeriod`).
const TRY_AGAIN: Duration = Duration::from_secs(10);
/// How soon after a missing image was told it is said that nothing is tried for a while.
const SOON: Duration = Duration::from_secs(2);
/// How often it is looked whether somebody has loaded a missing image.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl PodWorker {
    pub(super) fn handle_report(&mut self, report: Report) {
        match report {
            Report::Prepared(result) => self.prepared(result),
            Report::Launched { name, result } => match *result {
                Ok(launched) => self.launched(&name, launched),
                Err(refused) => self.refused(&name, refused),
            },
            Report::Hooked { name, id, result } => self.hooked(&name, &id, result),
            Report::Probed { name, id, kind, good } => self.probed(&name, &id, kind, good),
            Report::Exited { name, id, exit, message } => self.exited(&name, &id, &exit, message),
        }
    }

    fn launched(&mut self, name: &str, launched: Launched) {
        let Launched { container, instance, stop_signal } = launched;
        let Some(member) = self.pod_containers.member(name).cloned() else {
            container.signal(crate::container::Signal::KILL);
            return;
        };
        let id = instance.id.clone();
        let hook = member.container.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.clone());
        let state = self.state.container_mut(name);
        let run = u32::try_from(state.runs).unwrap_or_default();
        state.runs += 1;
        if let Some(ended) = state.ended().cloned() {
            state.last = Some(ended);
        }
        state.waits = None;
        state.image_missing = None;
        state.stage =
            Stage::Running { instance, hooked: hook.is_none(), probed: Probed::default(), ending: None };
        let live = Live {
            container: Arc::clone(&container),
            id: id.clone(),
            stop_signal,
            scope: CancellationToken::new(),
            started: watch::channel(false).0,
            gone: CancellationToken::new(),
            grace: None,
        };
        let scope = live.scope.clone();
        self.live.insert(name.to_owned(), live);
        self.view.runs(name, Some(Arc::clone(&container)));
        self.await_exit(&member, &id, run);
        match (hook, self.target(&member)) {
            (Some(handler), Some(target)) => {
                let (reporter, name) = (self.reporter.clone(), name.to_owned());
                tokio::spawn(scope.run_until_cancelled_owned(async move {
                    let result = hook::run(&handler, &target).await;
                    let _ = reporter.send(Report::Hooked { name, id, result });
                }));
            }
            _ => self.begins(&member),
        }
        if self.state.worker_state != PodWorkerState::Running || self.state.restarting_all {
            // It was decided otherwise while it started.
            self.end(&member, self.grace(), None, false, true);
        }
    }

    fn await_exit(&self, member: &PodContainer, id: &str, run: u32) {
        let Some(live) = self.live.get(member.name()) else { return };
        let (container, reporter) = (Arc::clone(&live.container), self.reporter.clone());
        let (pod, node) = (Arc::clone(&self.pod), Arc::clone(&self.node.preparer.node));
        let (spec, id) = (member.container.clone(), id.to_owned());
        tokio::spawn(async move {
            let exit = container.exited().await;
            let name = spec.name.clone();
            let code = exit.code;
            let message = blocking(move || Ok(termination::read(&node, &pod, &spec, run, code))).await;
            let message = message.unwrap_or_default();
            let _ = reporter.send(Report::Exited { name, id, exit, message });
        });
    }

    /// A container is through with its start: from now on it is probed.
    fn begins(&mut self, member: &PodContainer) {
        let name = member.name();
        if let Stage::Running { hooked, .. } = &mut self.state.container_mut(name).stage {
            *hooked = true;
        }
        if member.role == Role::Ephemeral || member.role == Role::Init {
            return;
        }
        let (Some(live), Some(target)) = (self.live.get(name), self.target(member)) else { return };
        if member.container.startup_probe.is_none() {
            live.started.send_replace(true);
        }
        for kind in [ProbeKind::Startup, ProbeKind::Liveness, ProbeKind::Readiness] {
            let Some(probe) = kind.of(&member.container).cloned() else { continue };
            let sink = ProbeSink {
                reporter: self.reporter.clone(),
                events: self.node.events.clone(),
                pod: Arc::clone(&self.pod),
                member: member.clone(),
                id: live.id.clone(),
            };
            let rounds =
                Rounds { kind, probe, target: target.clone(), started: live.started.subscribe(), sink };
            tokio::spawn(live.scope.clone().run_until_cancelled_owned(rounds.run()));
        }
    }

    fn hooked(&mut self, name: &str, id: &str, result: Result<(), String>) {
        let Some(member) = self.member_of(name, id) else { return };
        match result {
            Ok(()) => self.begins(&member),
            Err(message) => {
                // What the hook wrote may be secret: the event does not have it.
                let events = self.node.events.clone();
                events.container(
                    &self.pod,
                    &member,
                    EventType::Warning,
                    "FailedPostStartHook",
                    "PostStartHook failed",
                );
                let until = self.now();
                self.state.container_mut(name).waits =
                    Some(Waits { reason: "PostStartHookError".to_owned(), message, until });
                let grace = grace_of_pod(&self.pod);
                self.end(&member, grace, Some("FailedPostStartHook".to_owned()), false, false);
            }
        }
    }

    /// The container, if it still is the one with this id.
    fn member_of(&self, name: &str, id: &str) -> Option<PodContainer> {
        self.live.get(name).filter(|live| live.id == id)?;
        self.pod_containers.member(name).cloned()
    }

    fn probed(&mut self, name: &str, id: &str, kind: ProbeKind, good: bool) {
        if self.member_of(name, id).is_none() {
            return;
        }
        if let Stage::Running { probed, .. } = &mut self.state.container_mut(name).stage {
            match kind {
                ProbeKind::Startup => probed.startup = Some(good),
                ProbeKind::Liveness => probed.liveness = Some(good),
                ProbeKind::Readiness => probed.readiness = Some(good),
            }
        }
        if kind == ProbeKind::Startup
            && good
            && let Some(live) = self.live.get(name)
        {
            live.started.send_replace(true);
        }
    }

    fn exited(&mut self, name: &str, id: &str, exit: &Exit, message: String) {
        if self.live.get(name).is_none_or(|live| live.id != id) {
            return;
        }
        self.live.remove(name);
        self.view.runs(name, None);
        let at = Timestamp::try_from(exit.at).unwrap_or_else(|_| self.now());
        self.state.exited(name, exit, Some(message), at);
    }

    fn refused(&mut self, name: &str, refused: Refused) {
        let now = self.now();
        let Some(member) = self.pod_containers.member(name).cloned() else { return };
        let state = self.state.container_mut(name);
        let before = match std::mem::take(&mut state.stage) {
            Stage::Starting(before) => before,
            _ => None,
        };
        let wait = |reason: &str, message: String, until: Timestamp| {
            Some(Waits { reason: reason.to_owned(), message, until })
        };
        match refused {
            Refused::Run { instance, message } => {
                state.waits = wait("RunContainerError", message.clone(), now);
                state.last = before.or(state.last.take());
                state.runs += 1;
                state.stage = Stage::Ended(not_started(instance, message, now));
                return;
            }
            Refused::Create { reason, message } => {
                state.waits = wait(reason, message, later(now, TRY_AGAIN));
            }
            Refused::Image(missing) => self.missing(&member, missing, now),
        }
        if let Some(before) = before {
            self.state.container_mut(name).stage = Stage::Ended(before);
        }
    }

    fn missing(&mut self, member: &PodContainer, missing: Missing, now: Timestamp) {
        let image = member.container.image.clone().unwrap_or_default();
        let pod = Arc::clone(&self.pod);
        let events = self.node.events.clone();
        let event =
            |kind, reason: &str, message: String| events.container(&pod, member, kind, reason, message);
        let failed = |reason: &str| event(EventType::Warning, "Failed", format!("Error: {reason}"));
        let state = self.state.container_mut(member.name());
        let (reason, message, until) = match missing {
            Missing::Invalid(message) => {
                event(EventType::Warning, "InspectFailed", message.clone());
                ("InvalidImageName", message, later(now, TRY_AGAIN))
            }
            Missing::Never(message) => {
                event(EventType::Warning, "ErrImageNeverPull", message.clone());
                ("ErrImageNeverPull", message, later(now, LOOK_AGAIN))
            }
            Missing::Broken(message) => {
                let message = format!("Failed to inspect image \"{image}\": {message}");
                event(EventType::Warning, "InspectFailed", message.clone());
                ("ImageInspectError", message, later(now, TRY_AGAIN))
            }
            Missing::NotThere(message) => {
                let waits = state
                    .image_missing
                    .as_ref()
                    .and_then(|(since, said)| Some((state.image_backoff.wait(*since, now)?, said.clone())));
                match waits {
                    Some(((end, _), said)) => {
                        let until = end.min(later(now, LOOK_AGAIN));
                        if state.waits.as_ref().is_some_and(|waits| waits.reason == "ImagePullBackOff") {
                            // It was said already.
                            if let Some(waits) = &mut state.waits {
                                waits.until = until;
                            }
                            return;
                        }
                        let message = format!("Back-off pulling image \"{image}\"");
                        event(EventType::Normal, "BackOff", message.clone());
                        ("ImagePullBackOff", format!("{message}: ErrImagePull: {said}"), until)
                    }
                    None => {
                        state.image_backoff.next(now, now);
                        state.image_missing = Some((now, message.clone()));
                        let note = format!("Failed to pull image \"{image}\": {message}");
                        event(EventType::Warning, "Failed", note);
                        ("ErrImagePull", message, later(now, SOON))
                    }
                }
            }
        };
        failed(reason);
        state.waits = Some(Waits { reason: reason.to_owned(), message, until });
    }
}

/// A container whose program could not be started, as containerd tells of it.
fn not_started(instance: Instance, message: String, now: Timestamp) -> Ended {
    Ended {
        id: Some(instance.id),
        image: instance.image,
        image_id: instance.image_id,
        code: 128,
        reason: "StartError".to_owned(),
        message: Some(message),
        started_at: Some(Timestamp::UNIX_EPOCH),
        finished_at: Some(now),
        by_probe: false,
    }
}

/// Takes the results of a container's probes.
struct ProbeSink {
    reporter: mpsc::UnboundedSender<Report>,
    events: EventRecorder,
    pod: Arc<k8s_openapi::api::core::v1::Pod>,
    member: PodContainer,
    id: String,
}

impl Sink for ProbeSink {
    fn event(&self, reason: &'static str, message: String) {
        self.events.container(&self.pod, &self.member, EventType::Warning, reason, message);
    }

    fn counts(&self, kind: ProbeKind, good: bool) {
        let (name, id) = (self.member.name().to_owned(), self.id.clone());
        let _ = self.reporter.send(Report::Probed { name, id, kind, good });
    }
}
