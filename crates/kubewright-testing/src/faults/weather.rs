//! The faults of one run, as they come and go.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::SignedDuration;
use kubewright_cluster::admin::{Fault, Rule, Schedule};
use kubewright_world::World;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::plan::operators;
use super::{Kind, Plan};
use crate::Cluster;

/// How long a request of an operator takes at least, so that who asks without end does not stop time.
const REQUEST: Duration = Duration::from_millis(1);

/// What the weather is in a cluster; clones are of the same one. It is calm until somebody [begins](Self::begin).
#[derive(Clone, Default)]
pub(crate) struct Weather(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Whose plans are followed.
    source: Option<Source>,
    /// The plans so far, one for each wave.
    plans: Vec<Plan>,
    running: Option<JoinHandle<()>>,
    calm_at: Option<Instant>,
    skew: SignedDuration,
}

#[derive(Clone)]
struct Source {
    seed: u64,
    kinds: BTreeSet<Kind>,
}

impl Weather {
    /// The first wave begins, and there will be others: a new one each time that the cluster has
    /// [settled](Cluster::settle), until it [ends](Self::end).
    pub(crate) async fn begin(&self, cluster: &Cluster, seed: u64, kinds: BTreeSet<Kind>) {
        if let Some(admin) = cluster.admin() {
            let slow = Rule::new(Fault::Latency { by: REQUEST }).on(operators()).at(Schedule::always());
            admin.inject(slow);
        }
        self.0.lock().source = Some(Source { seed, kinds });
        self.next(cluster).await;
    }

    /// The next wave, if there are any.
    pub(crate) async fn next(&self, cluster: &Cluster) {
        {
            let mut state = self.0.lock();
            let Some(Source { seed, kinds }) = &state.source else { return };
            let plan = Plan::of(*seed, state.plans.len() as u64, kinds);
            state.calm_at = Some(Instant::now() + plan.end());
            state.plans.push(plan.clone());
            state.running = Some(tokio::spawn(follow(cluster.clone(), plan)));
        }
        // What is wrong from the beginning is wrong before anybody else does anything.
        tokio::time::sleep(REQUEST).await;
    }

    /// Waits until the wave is over.
    pub(crate) async fn calm(&self) {
        let running = self.0.lock().running.take();
        if let Some(running) = running {
            // A wave that panicked is over, too; the panic is told by who notes panics.
            let _ = running.await;
        }
    }

    /// Waits until the wave is over; there is none after it.
    pub(crate) async fn end(&self) {
        self.0.lock().source = None;
        self.calm().await;
    }

    /// When the wave is over; `None` when nothing ever went wrong.
    pub(crate) fn calm_at(&self) -> Option<Instant> {
        self.0.lock().calm_at
    }

    /// What there was so far, a plan for each wave.
    pub(crate) fn plans(&self) -> Vec<Plan> {
        self.0.lock().plans.clone()
    }

    /// The world as operators see it that start now.
    pub(crate) fn seen(&self, world: &World) -> World {
        World { clock: world.clock.skewed(self.0.lock().skew), dice: world.dice.clone() }
    }

    /// From now on operators that start have clocks that are so much ahead.
    pub(crate) fn skew(&self, by: SignedDuration) {
        self.0.lock().skew = by;
    }
}

async fn follow(cluster: Cluster, plan: Plan) {
    let start = Instant::now();
    let episodes = plan.episodes.into_iter().map(|episode| {
        let cluster = cluster.clone();
        async move {
            tokio::time::sleep_until(start + episode.from).await;
            cluster.befall(episode.mishap, episode.lasting).await;
        }
    });
    join_all(episodes).await;
}
