//! Controllers whose writes fail and who are restarted in the middle of their work, and a look at every moment of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::TryStreamExt;
use http::{Method, Request, Response, StatusCode};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{WatchEvent, WatchParams};
use kube::client::Body;
use kube::{Api, Client};
use kubewright_cluster::Cluster;
use kubewright_controllers::Setup;
use kubewright_runtime::{CancellationToken, Manager};
use kubewright_world::Dice;
use serde_json::json;
use tower::{BoxError, service_fn};

use crate::support::World;

/// What goes wrong with writes.
#[derive(Clone)]
pub(crate) struct Faults {
    dice: Dice,
    on: Arc<AtomicBool>,
}

impl Faults {
    /// One write in four fails, as `seed` says, until [`Faults::end`]: half of them before the server has seen them, half
    /// after it has carried them out.
    pub(crate) fn new(seed: u64) -> Self {
        Self { dice: Dice::from_seed(seed), on: Arc::new(AtomicBool::new(true)) }
    }

    /// From now on all is well.
    pub(crate) fn end(&self) {
        self.on.store(false, Ordering::Relaxed);
    }

    /// A number below `bound`.
    pub(crate) fn below(&self, bound: usize) -> usize {
        self.dice.below(bound)
    }

    fn client(&self, reliable: &Client) -> Client {
        let (faults, reliable) = (self.clone(), reliable.clone());
        let service = service_fn(move |request: Request<Body>| {
            let is_write = request.method() != Method::GET;
            let fate = if is_write && faults.on.load(Ordering::Relaxed) { faults.below(8) } else { 8 };
            let reliable = reliable.clone();
            async move {
                match fate {
                    0 => Ok(unavailable()),
                    1 => {
                        reliable.send(request).await?;
                        Err(BoxError::from("the connection was lost before the answer came"))
                    }
                    _ => Ok(reliable.send(request).await?),
                }
            }
        });
        Client::new(service, "default")
    }
}

fn unavailable() -> Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503,
        "reason": "ServiceUnavailable", "message": "the server is out for lunch"});
    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// Controllers that run apart from the others of a cluster.
pub(crate) struct Apart {
    names: &'static str,
    client: Client,
    running: CancellationToken,
}

impl Apart {
    /// Starts the controllers called `names`, on a client whose writes fail.
    pub(crate) fn start(world: &World, names: &'static str, faults: &Faults) -> Self {
        let client = faults.client(&world.client);
        let apart = Self { names, client, running: CancellationToken::new() };
        apart.run(&world.cluster);
        apart
    }

    /// Ends them, wherever they are, and starts them anew: they remember nothing.
    pub(crate) fn restart(&mut self, cluster: &Cluster) {
        self.running.cancel();
        self.running = CancellationToken::new();
        self.run(cluster);
    }

    fn run(&self, cluster: &Cluster) {
        let mut manager = Manager::new(self.client.clone(), cluster.world().clone());
        for builtin in kubewright_controllers::select(self.names).expect("known names") {
            for controller in builtin.controllers(&Setup::default()) {
                manager.add(controller);
            }
        }
        let running = self.running.clone();
        // Dropping the manager's future ends its reconciles between two writes.
        tokio::spawn(async move {
            let stop = running.clone();
            tokio::select! {
                biased;
                () = running.cancelled() => {}
                ended = manager.run(stop) => ended.expect("it runs"),
            }
        });
    }
}

/// Looks at the pods after every single change; what `judge` says against them is kept.
pub(crate) struct Witness(Arc<parking_lot::Mutex<Vec<String>>>);

impl Witness {
    pub(crate) fn of(
        world: &World,
        judge: impl Fn(&BTreeMap<String, Pod>) -> Result<(), String> + Send + 'static,
    ) -> Self {
        let complaints = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let (api, heard) = (world.api::<Pod>(), Arc::clone(&complaints));
        tokio::spawn(async move { watch(&api, judge, &heard).await });
        Self(complaints)
    }

    /// What was said so far.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

async fn watch(
    api: &Api<Pod>,
    judge: impl Fn(&BTreeMap<String, Pod>) -> Result<(), String>,
    heard: &parking_lot::Mutex<Vec<String>>,
) {
    let list = api.list(&kube::api::ListParams::default()).await.expect("a list");
    let mut version = list.metadata.resource_version.unwrap_or_default();
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap_or_default();
    let mut pods: BTreeMap<_, _> = list.items.into_iter().map(|pod| (name(&pod), pod)).collect();
    loop {
        let Ok(stream) = api.watch(&WatchParams::default(), &version).await else { return };
        let mut events = std::pin::pin!(stream);
        while let Ok(Some(event)) = events.try_next().await {
            let (WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod)) = &event
            else {
                continue;
            };
            version = pod.metadata.resource_version.clone().unwrap_or_default();
            if matches!(event, WatchEvent::Deleted(_)) {
                pods.remove(&name(pod));
            } else {
                pods.insert(name(pod), pod.clone());
            }
            if let Err(complaint) = judge(&pods) {
                heard.lock().push(complaint);
            }
        }
    }
}
