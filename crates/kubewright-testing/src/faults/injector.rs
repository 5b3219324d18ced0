//! The faults of one run, as they come and go.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use kubewright_cluster::admin::{ApiFault, Rule, Schedule};
use kubewright_world::{ClockSkew, World};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{FaultKind, Plan, operators};
use crate::Cluster;
use crate::checks::{Rate, Span};

/// How long a request of an operator takes at least, so that who asks without end does not stop time.
const REQUEST: Duration = Duration::from_millis(1);

/// For so long nobody whose watches have failed again and again waits before the next attempt (kube's and client-go's back-offs
/// go up to half a minute, and half as much again by chance).
const RECOVERY: Duration = Duration::from_secs(60);

/// Injects the faults of plans into a cluster; clones are of the same one. It does nothing until somebody [begins](Self::begin).
#[derive(Clone, Default)]
pub(crate) struct FaultInjector {
    state: Arc<Mutex<State>>,
    /// Sets the operators' clocks.
    clocks: ClockSkew,
}

#[derive(Default)]
struct State {
    /// Whose plans are followed.
    source: Option<Source>,
    /// Whether there are new waves.
    goes_on: bool,
    /// Whether the cluster has settled since the last one.
    is_due: bool,
    /// The plans so far, one for each wave, with when it began.
    plans: Vec<(Timestamp, Plan)>,
    running: Option<JoinHandle<()>>,
    over_at: Option<Instant>,
    /// How many faults are injected at this moment.
    injected: usize,
}

/// A fault that is injected, until this is dropped.
pub(crate) struct Injected(FaultInjector);

impl Drop for Injected {
    fn drop(&mut self) {
        self.0.state.lock().injected -= 1;
    }
}

#[derive(Clone)]
struct Source {
    seed: u64,
    kinds: BTreeSet<FaultKind>,
}

impl FaultInjector {
    /// The first wave begins, and there will be others: a new one each time that the test does something after the cluster has
    /// [settled](Cluster::settle), until it [ends](Self::end).
    pub(crate) async fn begin(&self, cluster: &Cluster, seed: u64, kinds: BTreeSet<FaultKind>) {
        if let Some(admin) = cluster.admin() {
            let slow = Rule::new(ApiFault::Latency { by: REQUEST }).on(operators()).at(Schedule::always());
            admin.inject(slow);
        }
        {
            let mut state = self.state.lock();
            state.source = Some(Source { seed, kinds });
            state.goes_on = true;
        }
        self.wave(cluster).await;
    }

    /// The cluster has settled: the next wave begins when the test does something. Until then it sees the cluster at rest.
    pub(crate) fn rest(&self) {
        self.state.lock().is_due = true;
    }

    /// The test does something: the next wave begins, if they go on and it is due.
    pub(crate) async fn next(&self, cluster: &Cluster) {
        let begins = {
            let mut state = self.state.lock();
            std::mem::take(&mut state.is_due) && state.goes_on
        };
        if begins {
            self.wave(cluster).await;
        }
    }

    /// One more wave, where there were any.
    pub(crate) async fn wave(&self, cluster: &Cluster) {
        {
            let mut state = self.state.lock();
            let Some(Source { seed, kinds }) = &state.source else { return };
            let plan = Plan::of(*seed, state.plans.len() as u64, kinds);
            state.over_at = Some(Instant::now() + plan.end());
            state.plans.push((cluster.world().clock.now(), plan.clone()));
            state.running = Some(tokio::spawn(follow(cluster.clone(), plan)));
        }
        // What is wrong from the beginning is wrong before anybody else does anything.
        tokio::time::sleep(REQUEST).await;
    }

    /// Waits until the wave is over, and everybody has found that out.
    pub(crate) async fn wait_until_over(&self) {
        let running = self.state.lock().running.take();
        if let Some(running) = running {
            // A wave that panicked is over, too; the panic is told by who notes panics.
            let _ = running.await;
            tokio::time::sleep(RECOVERY).await;
        }
    }

    /// Waits until the wave is over; none comes after it by itself.
    pub(crate) async fn end(&self, cluster: &Cluster) {
        self.state.lock().goes_on = false;
        cluster.without_loops(self.wait_until_over()).await;
    }

    /// Whether anything has gone wrong so far, or may.
    fn has_begun(&self) -> bool {
        self.state.lock().source.is_some()
    }

    /// A fault begins.
    pub(crate) fn begins(&self) -> Injected {
        self.state.lock().injected += 1;
        Injected(self.clone())
    }

    /// Whether a fault is injected at this moment.
    pub(crate) fn is_injecting(&self) -> bool {
        self.state.lock().injected > 0
    }

    /// How long to wait for something that takes so long when nothing goes wrong.
    pub(crate) fn patience(&self, within: Duration) -> Duration {
        let over_at = self.state.lock().over_at;
        let wave = over_at.map(|end| end.saturating_duration_since(Instant::now()) + RECOVERY);
        wave.unwrap_or_default() + within
    }

    /// What there was so far, a plan for each wave.
    pub(crate) fn plans(&self) -> Vec<Plan> {
        self.state.lock().plans.iter().map(|(_, plan)| plan.clone()).collect()
    }

    /// When the operators' watches may have told them what was no longer so: from a fault of theirs on, until the next wave
    /// begins.
    pub(crate) fn stale(&self) -> Vec<Span> {
        let state = self.state.lock();
        let ends = state.plans.iter().skip(1).map(|(start, _)| *start).chain([Timestamp::MAX]);
        let spans = state.plans.iter().zip(ends).filter_map(|((start, plan), to)| {
            let stale = plan.episodes.iter().filter(|episode| episode.kind.makes_stale());
            let from = stale.map(|episode| episode.from).min()?;
            Some(Span { from: start.saturating_add(from).unwrap_or(*start), to })
        });
        spans.collect()
    }

    /// The world as operators see it.
    pub(crate) fn seen(&self, world: &World) -> World {
        World { clock: world.clock.skewed_by(self.clocks), dice: world.dice.clone() }
    }

    /// From now on operators have clocks that are so much ahead.
    pub(crate) fn skew(&self, by: SignedDuration) {
        self.clocks.set_ahead(by);
    }
}

impl Cluster {
    /// As [`Self::without_loops`] under faults: there a request takes time, so that what asks without end lets time pass.
    /// Elsewhere somebody who looked every second would be who works in a year in which nobody else does.
    pub(crate) async fn unless_looping<F: Future>(&self, waited_for: F) -> F::Output {
        if self.injector().has_begun() { self.without_loops(waited_for).await } else { waited_for.await }
    }

    /// Waits for something, unless an operator asks without a pause for so long that it will not end.
    ///
    /// # Panics
    /// When one does.
    pub(crate) async fn without_loops<F: Future>(&self, waited_for: F) -> F::Output {
        tokio::select! {
            biased;
            done = waited_for => done,
            what = self.find_loop() => panic!("no hot loop: {what}"),
        }
    }

    async fn find_loop(&self) -> String {
        let mut rate = Rate::default();
        let Some(admin) = self.admin() else { return std::future::pending().await };
        rate.is_loop(admin.requested());
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if rate.is_loop(admin.requested()) {
                let counts = admin.requests(&operators(), 0).counts;
                let most = counts.into_iter().max_by_key(|count| count.count);
                return most.map_or_else(
                    || "somebody asks without a pause".to_owned(),
                    |most| {
                        format!("{} asks without a pause: {} {}", most.user_agent, most.verb, most.resource)
                    },
                );
            }
        }
    }
}

async fn follow(cluster: Cluster, plan: Plan) {
    let start = Instant::now();
    let episodes = plan.episodes.into_iter().map(|episode| {
        let cluster = cluster.clone();
        async move {
            tokio::time::sleep_until(start + episode.from).await;
            cluster.inject(episode.fault, episode.lasting).await;
        }
    });
    join_all(episodes).await;
}
