//! The pods of a node: each gets a worker when it is bound here, and whoever wants something of it finds it by its uid.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use kubewright_objects::ByText;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Addresses;
use crate::events::EventType;
use crate::pod::admission::admit;
use crate::pod::{NodeContext, PodWorker, View, sysctls};

/// The pods that have workers, by their uids. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodTable(Arc<Mutex<BTreeMap<String, View>>>);

impl PodTable {
    pub(crate) fn find(&self, uid: &str) -> Option<View> {
        self.0.lock().get(uid).cloned()
    }

    /// The pods that have something of the node.
    fn active(&self) -> Vec<Arc<Pod>> {
        self.0.lock().values().filter(|view| !view.is_over()).map(View::pod).collect()
    }
}

/// Gives the pods of a node their workers.
pub(crate) struct Pods {
    context: NodeContext,
    node: Node,
    table: PodTable,
    addresses: Arc<Mutex<Addresses>>,
    workers: BTreeMap<String, watch::Sender<Option<Arc<Pod>>>>,
    running: JoinSet<String>,
    shutdown: CancellationToken,
}

impl Pods {
    pub(crate) fn new(
        context: NodeContext,
        node: Node,
        table: PodTable,
        shutdown: CancellationToken,
    ) -> Self {
        let uid = node.metadata.uid.as_deref().unwrap_or_default();
        let addresses = Arc::new(Mutex::new(Addresses::of_node(uid)));
        Self { context, node, table, addresses, workers: BTreeMap::new(), running: JoinSet::new(), shutdown }
    }

    /// Watches the pods of the node until the node ends; then waits until all containers have ended.
    pub(crate) async fn run(mut self) {
        let mut events = pin!(watch_pods(&self.context.client, &self.node));
        // The pods of the list that a watch begins with.
        let mut listed: Option<Vec<Arc<Pod>>> = None;
        loop {
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => break,
                Some(ended) = self.running.join_next() => self.ended(ended),
                Some(event) = events.next() => match event {
                    Ok(Event::Init) => listed = Some(Vec::new()),
                    Ok(Event::InitApply(ByText(pod))) => listed.get_or_insert_default().push(Arc::new(pod)),
                    Ok(Event::InitDone) => self.replace(listed.take().unwrap_or_default()),
                    Ok(Event::Apply(ByText(pod))) => self.apply(Arc::new(pod)),
                    Ok(Event::Delete(ByText(pod))) => self.gone(uid(&pod)),
                    Err(error) => tracing::warn!(%error, "the pods of the node cannot be watched"),
                }
            }
        }
        while self.running.join_next().await.is_some() {}
    }

    /// What is there now is all that there is: the oldest first, as they were admitted in that order.
    fn replace(&mut self, mut pods: Vec<Arc<Pod>>) {
        let there: Vec<&str> = pods.iter().map(|pod| uid(pod)).collect();
        let gone: Vec<String> =
            self.workers.keys().filter(|known| !there.contains(&known.as_str())).cloned().collect();
        for uid in gone {
            self.gone(&uid);
        }
        pods.sort_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0));
        for pod in pods {
            self.apply(pod);
        }
    }

    fn gone(&mut self, uid: &str) {
        if let Some(worker) = self.workers.get(uid) {
            worker.send_replace(None);
        }
    }

    fn apply(&mut self, pod: Arc<Pod>) {
        if let Some(worker) = self.workers.get(uid(&pod)) {
            worker.send_replace(Some(pod));
            return;
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let is_over = matches!(phase, Some("Succeeded" | "Failed"));
        let mut failure = None;
        if !is_over && pod.metadata.deletion_timestamp.is_none() {
            let others = self.table.active();
            let others: Vec<&Pod> = others.iter().map(|pod| &**pod).collect();
            let has_ipc = self.context.runtime.isolation().namespaces.contains(&"ipc");
            failure = sysctls::admit(&pod, has_ipc).and_then(|()| admit(&pod, &self.node, &others)).err();
        }
        if let Some(refusal) = &mut failure {
            self.context.events.pod(&pod, EventType::Warning, &refusal.reason, refusal.message.clone());
            refusal.message = format!("Pod was rejected: {}", refusal.message);
        }
        let Some(address) = self.address(&pod) else {
            tracing::error!("no address is left for a pod");
            return;
        };
        let view = View::new(Arc::clone(&pod));
        let uid = uid(&pod).to_owned();
        self.table.0.lock().insert(uid.clone(), view.clone());
        let (sender, receiver) = watch::channel(Some(Arc::clone(&pod)));
        self.workers.insert(uid.clone(), sender);
        let worker = PodWorker::new(self.context.clone(), pod, address, failure, view);
        let shutdown = self.shutdown.clone();
        self.running.spawn(async move {
            worker.run(receiver, shutdown).await;
            uid
        });
    }

    /// A pod of the machine's own network has the machine's address; all others have one of their own.
    fn address(&self, pod: &Pod) -> Option<IpAddr> {
        if pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or_default() {
            return Some(self.context.host);
        }
        let before: Option<Ipv4Addr> =
            pod.status.as_ref().and_then(|status| status.pod_ip.as_ref()?.parse().ok());
        self.addresses.lock().give(uid(pod), before).map(IpAddr::V4)
    }

    fn ended(&mut self, ended: Result<String, tokio::task::JoinError>) {
        match ended {
            Ok(uid) => {
                self.workers.remove(&uid);
                self.table.0.lock().remove(&uid);
                self.addresses.lock().free(&uid);
            }
            Err(error) => tracing::error!(%error, "the worker of a pod has failed"),
        }
    }
}

fn watch_pods(
    client: &Client,
    node: &Node,
) -> impl Stream<Item = watcher::Result<Event<ByText<Pod>>>> + use<> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let config = watcher::Config::default().fields(&format!("spec.nodeName={name}"));
    let events = watcher::watcher(Api::all(client.clone()), config);
    kube::runtime::WatchStreamExt::default_backoff(events)
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}
