//! A controller in namespaces that come and go.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
};

use futures::future::join_all;
use parking_lot::{Mutex, RwLock};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    Error, Key, Namespaces,
    dynamic_watches::DynamicWatches,
    namespaces::Gatekeeper,
    runners::{self, WaitsFor, report_missing_kinds},
    source::{Connected, InNamespace, Replay, Sink},
};

/// The namespaces whose keys a controller does not work on: they have come and its caches are not filled there, or they have gone.
/// Clones share them.
#[derive(Clone, Default)]
pub(crate) struct ClosedNamespaces(Arc<RwLock<BTreeSet<String>>>);

impl ClosedNamespaces {
    /// Whether a key is of one of them.
    pub(crate) fn has(&self, key: &Key) -> bool {
        key.namespace.as_ref().is_some_and(|namespace| self.0.read().contains(namespace))
    }
}

/// What a controller whose own kind is in namespaces that come and go does when one does, in one cluster.
pub(crate) struct NamespaceGate {
    /// The controller, and the cluster if it is not the manager's own; for the log.
    controller: String,
    closed: ClosedNamespaces,
    /// What is waited for in a namespace.
    kinds: Vec<InNamespace>,
    /// What delivers all that is known.
    replays: Arc<[Replay]>,
    dynamic_watches: DynamicWatches,
    failed: mpsc::Sender<Error>,
    stop: CancellationToken,
    waiting: Mutex<BTreeMap<String, AbortOnDropHandle<()>>>,
}

impl NamespaceGate {
    /// What is waited for in a namespace; nothing if the own kind is not in namespaces that come and go.
    pub(crate) fn kinds(connected: &[Connected]) -> Vec<InNamespace> {
        if !connected.iter().any(|kind| kind.is_own && kind.in_namespace.is_some()) {
            return Vec::new();
        }
        connected.iter().filter_map(|kind| kind.in_namespace.clone()).collect()
    }

    /// Follows the namespaces of a manager as long as what it returns is held; `None` if there is nothing to wait for.
    pub(crate) fn follow(
        namespaces: Option<&Namespaces>,
        kinds: Vec<InNamespace>,
        controller: String,
        sink: &Sink,
        replays: Arc<[Replay]>,
        failed: &mpsc::Sender<Error>,
        stop: &CancellationToken,
    ) -> Option<Arc<Self>> {
        let namespaces = namespaces.filter(|_| !kinds.is_empty())?;
        let gate = Arc::new(Self {
            controller,
            closed: sink.open.namespaces.clone(),
            kinds,
            replays,
            dynamic_watches: sink.dynamic_watches.clone(),
            failed: failed.clone(),
            stop: stop.clone(),
            waiting: Mutex::default(),
        });
        let told: Weak<Self> = Arc::downgrade(&gate);
        namespaces.add_gatekeeper(told);
        Some(gate)
    }
}

impl Gatekeeper for NamespaceGate {
    fn close(&self, namespace: &str) {
        self.closed.0.write().insert(namespace.to_owned());
        self.waiting.lock().remove(namespace);
    }

    fn open_when_filled(&self, namespace: &str) {
        let (mut waits, mut filled) = (Vec::new(), Vec::new());
        for (wait, listed) in self.kinds.iter().map(|kind| WaitsFor::of(kind(namespace))) {
            waits.push(wait);
            filled.push(listed);
        }
        let controller = format!("{} in the namespace {namespace}", self.controller);
        let task = format!("the caches of {controller}");
        let filled = report_missing_kinds(controller, waits.into(), join_all(filled));
        let (closed, name, stop) = (self.closed.clone(), namespace.to_owned(), self.stop.clone());
        let (replays, dynamic_watches) = (self.replays.clone(), self.dynamic_watches.clone());
        let wait = async move {
            if stop.run_until_cancelled(filled).await.is_none() {
                return;
            }
            closed.0.write().remove(&name);
            let is_there = |key: &Key| key.namespace.as_deref() == Some(&*name);
            replays.iter().for_each(|replay| replay(&is_there));
            dynamic_watches.replay(&is_there);
        };
        let waiting = runners::spawn(task, wait, self.failed.clone());
        self.waiting.lock().insert(namespace.to_owned(), waiting);
    }
}
