//! One process of an operator, as a task.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use kubewright_recording::{Author, Reconcile};
use kubewright_runtime::command::{Installation, Operator, Run};
use kubewright_runtime::rbac::Observed;
use kubewright_runtime::{Backlog, CancellationToken, Failing, Leadership, Manager, ReconcileRecord};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::Cluster;
use crate::line::Line;

/// A running manager.
pub(super) struct Replica {
    stop: CancellationToken,
    line: Line,
    backlog: Backlog,
    leadership: Option<Leadership>,
    task: JoinHandle<()>,
    failure: Arc<Mutex<Option<String>>>,
}

/// A reconcile as it is recorded.
fn noted(record: &ReconcileRecord, by: &Author) -> Reconcile {
    Reconcile {
        time: record.began,
        by: by.clone(),
        controller: record.controller.to_string(),
        key: record.key.to_string(),
        reasons: record.reasons.clone(),
        waited: record.waited.as_secs_f64(),
        took: record.took.as_secs_f64(),
        outcome: record.outcome.clone(),
        failed: record.has_failed,
        accesses: record.accesses.clone(),
        accesses_left_out: record.accesses_left_out,
    }
}

impl Replica {
    /// Runs the operator as its program would; `elects`: as one of several.
    pub(super) fn start(
        cluster: &Cluster,
        operator: &Operator,
        installation: &Installation,
        elects: bool,
        observed: &Observed,
    ) -> Self {
        let (name, home) = (operator.name(), operator.home(installation));
        let refused = |why: &dyn Display| -> ! { panic!("the operator {name}: {why}") };
        let (line, stop) = (Line::default(), cluster.shutdown());
        let client = cluster.operator_client(&home, name, &operator.user_agent());
        let client = client.unwrap_or_else(|error| refused(&error));
        let world = cluster.injector().seen(cluster.world());
        let manager = Manager::in_process(observed.client(&line.client(client)), world);
        let run = Run {
            namespaces: installation.namespaces.clone(),
            leader_elect: elects,
            leader_elect_resource_namespace: Some(home.clone()),
            ..Run::default()
        };
        let mut manager = operator.manager(manager, &run).unwrap_or_else(|error| refused(&error));
        if let Some(admin) = cluster.admin().cloned() {
            let user = format!("system:serviceaccount:{home}:{name}");
            let by = Author { user, program: operator.user_agent() };
            manager.on_reconcile(move |record| admin.note_reconcile(noted(record, &by)));
        }
        let ended = CancellationToken::new();
        if let Some((host, server)) = operator.webhooks_in_process(installation) {
            cluster.mount_webhooks_until(host, server.service(), ended.clone());
            manager.serve(server);
        }
        let (backlog, leadership) = (manager.backlog().clone(), manager.leadership());
        let (running, cut, failure) = (manager.run(stop.clone()), line.cut.clone(), Arc::default());
        let ended_with: Arc<Mutex<Option<String>>> = Arc::clone(&failure);
        let task = tokio::spawn(async move {
            let _ended = ended.drop_guard();
            tokio::select! {
                biased;
                () = cut.cancelled() => {}
                ended = running => *ended_with.lock() = ended.err().map(|error| error.to_string()),
            }
        });
        Self { stop, line, backlog, leadership, task, failure }
    }

    pub(super) fn ask_to_end(&self) {
        self.stop.cancel();
    }

    pub(super) fn kill(&self) {
        self.line.cut.cancel();
    }

    pub(super) fn kill_after(&self, writes: u64) {
        self.line.cut_after(writes);
    }

    /// Waits for its end; what it failed with.
    pub(super) async fn ended(self) -> Option<String> {
        match self.task.await {
            Ok(()) => self.failure.lock().take(),
            Err(error) => Some(error.to_string()),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        !self.task.is_finished()
    }

    pub(super) fn is_leading(&self) -> bool {
        self.leadership.as_ref().is_none_or(Leadership::is_leader)
    }

    pub(super) fn is_at_rest(&self, horizon: Duration) -> bool {
        self.task.is_finished() || self.backlog.is_empty(horizon) && self.line.is_silent()
    }

    /// The keys that it failed to reconcile and tries again later.
    pub(super) fn failing(&self) -> Vec<Failing> {
        if self.is_running() { self.backlog.failing() } else { Vec::new() }
    }

    /// What it failed with, if it has.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }
}
