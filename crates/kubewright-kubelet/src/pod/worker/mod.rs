//! The worker of a pod: a task that keeps its state, has decided what happens next, carries that out, and writes the
//! status of the pod (`pkg/kubelet/pod_workers.go`, `syncPod`, `syncTerminatingPod`, `syncTerminatedPod`).

mod carry_out;
mod reports;
mod status;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::Client;
use kubewright_world::World;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::decision::decide;
use super::ending::grace_of_pod;
use super::launch::{Launched, Refused};
use super::pod_containers::PodContainers;
use super::prepare::{Prepared, Preparer};
use super::state::{PodFailure, PodState, PodWorkerState};
use super::view::View;
use crate::container::{Container, Exit, Runtime, Signal};
use crate::events::EventRecorder;
use crate::probe::ProbeKind;

/// How often what a pod's volumes show is looked at anew. (The kubelet watches the objects, and looks about once a minute.)
const REFRESH: Duration = Duration::from_secs(10);
/// Pause before a status that was not taken is written again.
const STATUS_RETRY: Duration = Duration::from_secs(2);
/// How long a container has when the node itself ends.
const LAST_GRACE: Duration = Duration::from_secs(2);

/// Clients and services of the node that all pod workers share.
#[derive(Clone)]
pub(crate) struct NodeContext {
    pub(crate) client: Client,
    pub(crate) world: World,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) preparer: Preparer,
    pub(crate) events: EventRecorder,
    /// The address of the node.
    pub(crate) host: IpAddr,
}

/// Results of the tasks that a worker has started.
#[derive(Debug)]
enum Report {
    Prepared(Result<Arc<Prepared>, Vec<String>>),
    Launched { name: String, result: Box<Result<Launched, Refused>> },
    Hooked { name: String, id: String, result: Result<(), String> },
    Probed { name: String, id: String, kind: ProbeKind, good: bool },
    Exited { name: String, id: String, exit: Exit, message: String },
}

/// A container with a process, as its worker holds it.
#[derive(Debug)]
struct Live {
    container: Arc<dyn Container>,
    id: String,
    stop_signal: Option<String>,
    /// Ends its probes and its hook.
    scope: CancellationToken,
    /// Whether it has started: its probes wait for it.
    started: watch::Sender<bool>,
    /// Cancelled when it has ended.
    gone: CancellationToken,
    /// How long it has, once it is being ended.
    grace: Option<watch::Sender<Duration>>,
}

impl Drop for Live {
    fn drop(&mut self) {
        // Whatever becomes of the worker, no process outlives it. One that has ended does not notice.
        self.container.signal(Signal::KILL);
        self.scope.cancel();
        self.gone.cancel();
    }
}

/// The worker of a pod.
pub(crate) struct PodWorker {
    node: NodeContext,
    pod: Arc<Pod>,
    pod_containers: PodContainers,
    state: PodState,
    live: BTreeMap<String, Live>,
    prepared: Option<Arc<Prepared>>,
    preparing: bool,
    /// When the volumes are made (again).
    prepare_at: Option<Timestamp>,
    /// How long until they are tried again.
    prepare_wait: Duration,
    written: Option<PodStatus>,
    sync_status_at: Option<Timestamp>,
    gone: bool,
    view: View,
    reports: mpsc::UnboundedReceiver<Report>,
    reporter: mpsc::UnboundedSender<Report>,
}

impl PodWorker {
    /// A worker for a pod that this node has not seen before, with its address. `failure` is why the node does not take it.
    pub(crate) fn new(
        node: NodeContext,
        pod: Arc<Pod>,
        address: IpAddr,
        failure: Option<PodFailure>,
        view: View,
    ) -> Self {
        let pod_containers = PodContainers::of(&pod);
        let mut state = PodState::recovered(&pod, &pod_containers);
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if failure.is_some() || matches!(phase, Some("Succeeded" | "Failed")) {
            state.worker_state = PodWorkerState::Terminated;
        }
        state.failure = failure;
        state.address = Some(address);
        let now = node.world.clock.now();
        state.started_at.get_or_insert(now);
        let (reporter, reports) = mpsc::unbounded_channel();
        Self {
            node,
            pod,
            pod_containers,
            state,
            live: BTreeMap::new(),
            prepared: None,
            preparing: false,
            prepare_at: Some(now),
            prepare_wait: Duration::ZERO,
            written: None,
            sync_status_at: None,
            gone: false,
            view,
            reports,
            reporter,
        }
    }

    /// Works until the pod is gone, or the node ends: then its containers have ended too. `pods` has the pod as the API
    /// server last told of it; nothing once it is gone there.
    pub(crate) async fn run(
        mut self,
        mut pods: watch::Receiver<Option<Arc<Pod>>>,
        shutdown: CancellationToken,
    ) {
        self.sync_status().await;
        loop {
            let wake = self.sync_pod();
            self.sync_status().await;
            if self.state.worker_state == PodWorkerState::Terminated
                && !self.state.is_busy()
                && self.is_finished().await
            {
                return;
            }
            let wait = wake.map(|wake| self.until(wake));
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return self.end_at_once().await,
                Some(report) = self.reports.recv() => {
                    self.handle_report(report);
                    while let Ok(report) = self.reports.try_recv() {
                        self.handle_report(report);
                    }
                }
                changed = pods.changed(), if !self.gone => {
                    let pod = if changed.is_ok() { pods.borrow_and_update().clone() } else { None };
                    self.update_pod(pod);
                }
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
    }

    /// Carries out what is due, and says when to look again.
    fn sync_pod(&mut self) -> Option<Timestamp> {
        let now = self.now();
        let deadline = self.deadline().filter(|_| self.state.failure.is_none());
        if deadline.is_some_and(|deadline| deadline <= now)
            && self.state.worker_state != PodWorkerState::Terminated
        {
            self.exceed_deadline();
        }
        if self.is_deleted() {
            self.begin_to_end();
        }
        let mut wake = self.sync_status_at;
        match self.state.worker_state {
            PodWorkerState::Preparing => wake = earlier(wake, self.prepare_when_due(now)),
            PodWorkerState::Running => {
                if self.state.restarting_all && !self.state.is_busy() {
                    self.state.reset();
                }
                let decision = decide(&self.pod_containers, &self.state, now);
                wake = earlier(wake, decision.wake);
                for action in decision.actions {
                    self.carry_out(action, now);
                }
                wake = earlier(wake, self.prepare_when_due(now));
            }
            PodWorkerState::Terminating | PodWorkerState::Terminated => {}
        }
        if self.state.worker_state == PodWorkerState::Terminating && !self.state.is_busy() {
            self.state.worker_state = PodWorkerState::Terminated;
        }
        if matches!(self.state.worker_state, PodWorkerState::Preparing | PodWorkerState::Running) {
            wake = earlier(wake, deadline);
        }
        wake
    }

    /// The pod as it is now in the API.
    fn update_pod(&mut self, pod: Option<Arc<Pod>>) {
        let Some(pod) = pod else {
            self.gone = true;
            return;
        };
        if version(&pod) > version(&self.pod) {
            self.pod_containers = PodContainers::of(&pod);
            self.pod = pod;
            self.written = None;
            if self.is_deleted() {
                self.shorten_grace();
            }
        }
    }

    fn is_deleted(&self) -> bool {
        self.gone || self.pod.metadata.deletion_timestamp.is_some()
    }

    /// How long its containers have when it goes. One that is gone from the API has no time.
    fn grace(&self) -> Duration {
        if self.gone { Duration::from_secs(1) } else { grace_of_pod(&self.pod) }
    }

    fn deadline(&self) -> Option<Timestamp> {
        let seconds = u64::try_from(self.pod.spec.as_ref()?.active_deadline_seconds?).ok()?;
        self.state.started_at?.checked_add(Duration::from_secs(seconds)).ok()
    }

    fn now(&self) -> Timestamp {
        self.node.world.clock.now()
    }

    fn until(&self, time: Timestamp) -> Duration {
        // A moment more than nothing, so that what is due by then is due.
        Duration::try_from(time.duration_since(self.now())).unwrap_or_default() + Duration::from_millis(1)
    }

    /// The node ends: so do the containers, soon and without hooks.
    async fn end_at_once(mut self) {
        let exits: Vec<_> = self.live.values().map(|live| live.container.exited()).collect();
        for live in self.live.values() {
            live.scope.cancel();
            live.container.signal(Signal::TERMINATE);
        }
        let all = futures::future::join_all(exits);
        let _ = tokio::time::timeout(LAST_GRACE, all).await;
        let live = std::mem::take(&mut self.live);
        let exits: Vec<_> = live.values().map(|live| live.container.exited()).collect();
        drop(live);
        let _ = tokio::time::timeout(LAST_GRACE, futures::future::join_all(exits)).await;
    }
}

/// Versions of objects are numbers that grow (`k8s.io/apimachinery/pkg/util/resourceversion`).
fn version(pod: &Pod) -> u64 {
    pod.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
