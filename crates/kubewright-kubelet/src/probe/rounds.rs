//! When a container is probed, and from when on what comes of it counts (`pkg/kubelet/prober/worker.go`).

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{ProbeKind, ProbeResult, ProbeTarget};

/// Who is told of what probes say.
pub(crate) trait Sink: Send + Sync {
    /// A probe failed, or has something to tell: an event about the container.
    fn event(&self, reason: &'static str, message: String);
    /// So many probes in a row said the same that it counts.
    fn counts(&self, kind: ProbeKind, good: bool);
}

/// The probes of one kind of one container, from its start to its end.
pub(crate) struct Rounds<S> {
    pub(crate) kind: ProbeKind,
    pub(crate) probe: Probe,
    pub(crate) target: ProbeTarget,
    /// Whether the container has started: the other probes wait for the startup probe.
    pub(crate) started: watch::Receiver<bool>,
    pub(crate) sink: S,
}

/// How many probes in a row said the same.
#[derive(Default)]
struct Run {
    good: bool,
    length: i32,
}

impl Run {
    /// Notes an answer; whether it counts by now.
    fn add(&mut self, good: bool, threshold: i32) -> bool {
        if self.length == 0 || self.good != good {
            *self = Self { good, length: 0 };
        }
        self.length = self.length.saturating_add(1);
        self.length >= threshold
    }
}

impl<S: Sink> Rounds<S> {
    /// Probes until that is of no more use. Dropping it ends the probes.
    pub(crate) async fn run(mut self) {
        let seconds = |number: Option<i32>, default: u64| {
            Duration::from_secs(number.and_then(|number| u64::try_from(number).ok()).unwrap_or(default))
        };
        let begin = Instant::now() + seconds(self.probe.initial_delay_seconds, 0);
        if self.kind != ProbeKind::Startup && self.started.wait_for(|started| *started).await.is_err() {
            return;
        }
        tokio::time::sleep_until(begin).await;
        let mut ticks =
            tokio::time::interval(seconds(self.probe.period_seconds, 10).max(Duration::from_secs(1)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut run = Run::default();
        loop {
            ticks.tick().await;
            let Some(good) = self.ask().await else { continue };
            let threshold = if good { self.probe.success_threshold } else { self.probe.failure_threshold };
            if !run.add(good, threshold.unwrap_or(if good { 1 } else { 3 })) {
                continue;
            }
            self.sink.counts(self.kind, good);
            let is_over = match self.kind {
                ProbeKind::Startup => true,
                ProbeKind::Liveness => !good,
                ProbeKind::Readiness => false,
            };
            if is_over {
                return;
            }
        }
    }

    /// Whether it is well; `None` when nobody knows.
    async fn ask(&self) -> Option<bool> {
        let kind = self.kind;
        match self.target.probe(&self.probe).await {
            ProbeResult::Good => Some(true),
            ProbeResult::Warning(message) => {
                self.sink.event("ProbeWarning", format!("{kind} probe warning: {message}"));
                Some(true)
            }
            ProbeResult::Bad(message) => {
                self.sink.event("Unhealthy", format!("{kind} probe failed: {message}"));
                Some(false)
            }
            ProbeResult::Unknown(message) => {
                let message = format!("{kind} probe errored and resulted in unknown state: {message}");
                self.sink.event("Unhealthy", message);
                None
            }
        }
    }
}
