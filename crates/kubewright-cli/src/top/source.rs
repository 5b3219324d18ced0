//! What happens in a cluster: its watches, as `record` has them, and what its operators say of their reconciles.

use std::{collections::BTreeSet, future, time::Duration};

use anyhow::bail;
use futures::{StreamExt, stream::SelectAll};
use http::Request;
use jiff::Timestamp;
use kube::{Client, runtime::watcher::Event};
use kubewright_cluster::recording::Write;
use kubewright_recording::{Author, Reconcile, Redactor};
use kubewright_view::ReconcileRow;
use kubewright_world::World;
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use crate::record::{
    Changes, follow, is_refused,
    kinds::{self, Wanted, Watched},
    state::State,
};

/// How often a cluster is asked for reconciles.
const ASKED: Duration = Duration::from_secs(1);

/// What has happened.
pub(super) enum Update {
    Write {
        write: Write,
        /// Whether it only tells what was there when somebody began to look.
        is_first: bool,
    },
    Reconciles(Vec<ReconcileRow>),
    /// Something for people.
    Note(String),
}

/// Where it comes from.
pub(super) struct Source {
    watched: Vec<Watched>,
    changes: Changes,
    state: State,
    /// What an event said besides the first.
    waiting: Vec<Update>,
    world: World,
    reconciles: mpsc::Receiver<Vec<ReconcileRow>>,
    /// It ends with this.
    _asking: JoinSet<()>,
    left_out: usize,
}

impl Source {
    /// Nothing.
    pub(super) fn none() -> Self {
        Self::of(Vec::new(), SelectAll::new(), mpsc::channel(1).1, JoinSet::new())
    }

    fn of(
        watched: Vec<Watched>,
        changes: Changes,
        reconciles: mpsc::Receiver<Vec<ReconcileRow>>,
        asking: JoinSet<()>,
    ) -> Self {
        // Values of Secrets are hidden where they are shown.
        let state = State::new(Redactor::new(&[], false, Vec::new()));
        let (waiting, world) = (Vec::new(), World::real());
        Self { watched, changes, state, waiting, world, reconciles, _asking: asking, left_out: 0 }
    }

    /// The kinds of a cluster that can be watched, or those that are named.
    ///
    /// # Errors
    /// When the cluster cannot be reached, or has not one of the kinds.
    pub(super) async fn of_cluster(client: &Client, wanted: &Wanted) -> anyhow::Result<Self> {
        let watched = kinds::find(client, wanted).await?;
        let changes = watched.iter().enumerate().map(|(number, kind)| follow(client, number, kind)).collect();
        let (sender, reconciles) = mpsc::channel(1);
        let mut asking = JoinSet::new();
        asking.spawn(ask(client.clone(), sender));
        Ok(Self::of(watched, changes, reconciles, asking))
    }

    /// The next thing that happened; never, in a recording.
    ///
    /// # Errors
    /// When nothing of the cluster may be read.
    pub(super) async fn next(&mut self) -> anyhow::Result<Update> {
        loop {
            if let Some(update) = self.waiting.pop() {
                return Ok(update);
            }
            if self.watched.is_empty() {
                return future::pending().await;
            }
            tokio::select! {
                change = self.changes.next() => {
                    let Some((number, event)) = change else {
                        bail!("nothing of the cluster can be read with these rights");
                    };
                    match event {
                        Ok(event) => self.observe(number, event)?,
                        Err(error) if is_refused(&error) => {
                            self.left_out += 1;
                            let (count, kind) = (self.left_out, self.watched[number].called());
                            let note = format!("{count} kinds may not be read, such as {kind}");
                            self.waiting.push(Update::Note(note));
                        }
                        Err(error) => {
                            let kind = self.watched[number].called();
                            self.waiting.push(Update::Note(format!("{kind} is tried again: {error}")));
                        }
                    }
                }
                Some(rows) = self.reconciles.recv() => self.waiting.push(Update::Reconciles(rows)),
            }
        }
    }

    fn observe(&mut self, number: usize, event: Event<kube::api::DynamicObject>) -> anyhow::Result<()> {
        let is_list = matches!(event, Event::InitApply(_));
        let writes = self.state.observe(&self.watched[number], event, self.world.clock.now())?;
        self.waiting.extend(writes.into_iter().rev().map(|write| {
            let is_first = is_list && !write.inferred;
            Update::Write { write: Write::from(write), is_first }
        }));
        Ok(())
    }
}

/// Asks a control plane of Kubewright for the reconciles that it was told of, until it says that it does not know of any.
async fn ask(client: Client, sender: mpsc::Sender<Vec<ReconcileRow>>) {
    let mut known = BTreeSet::new();
    let mut tick = interval(ASKED);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Ok(request) = Request::get("/kubewright/reconciles").body(Vec::new()) else { return };
        match client.request_text(request).await {
            Ok(answer) => {
                let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
                let rows = unknown(&answer, &mut known);
                if !rows.is_empty() && sender.send(rows).await.is_err() {
                    return;
                }
            }
            // Another cluster, or not these rights.
            Err(kube::Error::Api(_)) => return,
            Err(_) => {}
        }
    }
}

/// What of a controller, which key, and when.
pub(super) type Known = BTreeSet<(String, String, String)>;

/// The reconciles of an answer that the one before had not, oldest first; `known` is those of the one before.
pub(super) fn unknown(answer: &Value, known: &mut Known) -> Vec<ReconcileRow> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (mut now, mut rows) = (Known::new(), Vec::new());
    for controller in answer["controllers"].as_array().into_iter().flatten() {
        let by = Author { user: text(&controller["user"]), program: text(&controller["userAgent"]) };
        for one in controller["reconciles"].as_array().into_iter().flatten().rev() {
            let Ok(time) = text(&one["began"]).parse::<Timestamp>() else { continue };
            let name = format!("{} {} {}", by.user, by.program, text(&controller["controller"]));
            let id = (name, text(&one["key"]), time.to_string());
            if !known.contains(&id) && !now.contains(&id) {
                rows.push(ReconcileRow::from(&Reconcile {
                    time,
                    by: by.clone(),
                    controller: text(&controller["controller"]),
                    key: text(&one["key"]),
                    reasons: text(&one["reasons"]),
                    waited: one["waitedSeconds"].as_f64().unwrap_or_default(),
                    took: one["tookSeconds"].as_f64().unwrap_or_default(),
                    outcome: text(&one["outcome"]),
                    failed: one["failed"] == true,
                    accesses: Vec::deserialize(&one["accesses"]).unwrap_or_default(),
                    accesses_left_out: one["accessesLeftOut"].as_u64().unwrap_or_default(),
                }));
            }
            now.insert(id);
        }
    }
    *known = now;
    rows
}
