//! A controller in the clusters beside the manager's own.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    ClientLayer, Error, Member, Namespaces,
    apply::AppliedKind,
    clusters::Follower,
    context::{ClusterContexts, Kinds},
    in_namespaces::{ClosedNamespaces, NamespaceGate},
    leader::gate::Gate,
    metrics::Metrics,
    runners::{self, WaitsFor, report_missing_kinds},
    source::{Connected, Gates, KindSource, Replay, Sink},
};

/// What a controller does when a cluster comes or goes.
pub(crate) struct InClusters {
    /// What it looks at in each.
    pub(crate) kinds: Arc<[Box<dyn KindSource>]>,
    pub(crate) applied: Vec<AppliedKind>,
    /// Whether the cluster is in the keys that come from there.
    pub(crate) is_in_keys: bool,
    pub(crate) sink: Sink,
    pub(crate) contexts: Arc<ClusterContexts>,
    /// Lets writes through when it is this replica's turn.
    pub(crate) gate: Option<Gate>,
    pub(crate) layers: Vec<ClientLayer>,
    pub(crate) metrics: Metrics,
    /// Delivers all objects of the manager's own cluster once more.
    pub(crate) own: Arc<[Replay]>,
    /// Those that the manager follows, if it does.
    pub(crate) namespaces: Option<Namespaces>,
    pub(crate) failed: mpsc::Sender<Error>,
    pub(crate) joined: Mutex<BTreeMap<String, Joined>>,
}

/// A cluster that has come.
pub(crate) struct Joined {
    /// Whether what happens there leads to anything.
    open: Arc<AtomicBool>,
    /// Held as long as it is replayed.
    _alive: Arc<()>,
    /// Waits for its caches.
    _waiting: AbortOnDropHandle<()>,
    /// Held as long as it follows namespaces that come and go.
    _namespaces: Option<Arc<NamespaceGate>>,
}

impl Follower for InClusters {
    fn joined(&self, member: &Member) {
        let name: Arc<str> = member.name().into();
        let (open, alive) = (Arc::new(AtomicBool::new(false)), Arc::new(()));
        let sink = Sink {
            open: Gates {
                cluster: open.clone(),
                namespaces: ClosedNamespaces::default(),
                ..self.sink.open.clone()
            },
            cluster: self.is_in_keys.then(|| name.clone()),
            ..self.sink.clone()
        };
        let client =
            self.gate.as_ref().map_or_else(|| member.client().clone(), |gate| gate.guard(member.client()));
        let client = self.layers.iter().fold(client, |client, layer| layer.client(client));
        self.contexts.add(
            &name,
            sink.clone(),
            client,
            member.cache().clone(),
            Kinds::of(&self.kinds, &self.applied),
        );
        member.cache().add_applier(&self.sink.controller, &self.sink.predecessors);
        for kind in self.kinds.iter() {
            if let Err(mistake) = kind.declare(member.cache(), &self.metrics) {
                tracing::error!(controller = %self.sink.controller, cluster = %name, mistake, "a cluster is not looked at as it should be");
            }
        }
        let (mut synced, mut waits, mut replays) = (Vec::new(), Vec::new(), Vec::new());
        let connected: Vec<_> =
            self.kinds.iter().map(|kind| kind.connect(member.cache(), sink.clone())).collect();
        let in_namespaces = NamespaceGate::kinds(&connected);
        for Connected { cache, replay, .. } in connected {
            let (wait, filled) = WaitsFor::of(cache);
            waits.push(wait);
            synced.push(filled);
            replays.extend(replay);
        }
        let replays: Arc<[Replay]> = replays.into();
        let known = replays.clone();
        let replay: Replay = Box::new(move |accepts| known.iter().for_each(|replay| replay(accepts)));
        self.sink.dynamic_watches.add(&alive, replay);
        let controller = format!("{} in {name}", self.sink.controller);
        let task = format!("the caches of {controller}");
        let namespaces = NamespaceGate::follow(
            self.namespaces.as_ref(),
            in_namespaces,
            controller.clone(),
            &sink,
            replays.clone(),
            &self.failed,
            member.stop(),
        );
        let (opening, own, stop) = (open.clone(), self.own.clone(), member.stop().clone());
        let is_followed = !self.kinds.is_empty();
        let filled = report_missing_kinds(controller, waits.into(), join_all(synced));
        let wait = async move {
            if stop.run_until_cancelled(filled).await.is_none() {
                return;
            }
            opening.store(true, Ordering::SeqCst);
            replays.iter().chain(own.iter().filter(|_| is_followed)).for_each(|replay| replay(&|_| true));
        };
        let waiting = runners::spawn(task, wait, self.failed.clone());
        let joined = Joined { open, _alive: alive, _waiting: waiting, _namespaces: namespaces };
        self.joined.lock().insert(name.to_string(), joined);
    }

    fn left(&self, name: &str) {
        if let Some(joined) = self.joined.lock().remove(name) {
            joined.open.store(false, Ordering::SeqCst);
        }
        self.contexts.remove(name);
    }

    fn look_again(&self) {
        if !self.kinds.is_empty() {
            self.own.iter().for_each(|replay| replay(&|_| true));
        }
    }
}
