//! Controllers whose writes fail and who are restarted in the middle of their work, and a look at every moment of it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::TryStreamExt;
use http::{Method, Request, Response, StatusCode};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{WatchEvent, WatchParams};
use kube::client::Body;
use kube::{Api, Client, Resource, ResourceExt};
use kubewright_runtime::{CancellationToken, Manager};
use kubewright_world::Dice;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tower::{BoxError, service_fn};

use crate::support::{World, setup};

/// What goes wrong with writes.
#[derive(Clone)]
pub(crate) struct Faults {
    dice: Dice,
    on: Arc<AtomicBool>,
    one_in: usize,
    life: Option<usize>,
}

/// What becomes of a write.
enum Fate {
    Answered,
    /// The server never sees it.
    Unreachable,
    /// The server says that it cannot now.
    Refused,
    /// The server carries it out, and nobody hears of that.
    AnswerLost,
    /// Whoever sent it is no more, before it was sent or after.
    Died {
        sent: bool,
    },
}

impl Faults {
    /// One write in four fails, as `seed` says, until [`Faults::end`]: half of them before the server has seen them, half
    /// after it has carried them out.
    pub(crate) fn new(seed: u64) -> Self {
        Self { dice: Dice::from_seed(seed), on: Arc::new(AtomicBool::new(true)), one_in: 4, life: None }
    }

    /// One write in so many fails.
    pub(crate) fn one_in(self, writes: usize) -> Self {
        Self { one_in: writes, ..self }
    }

    /// Controllers die of every so many writes, and are started anew.
    pub(crate) fn deadly_after(self, writes: usize) -> Self {
        Self { life: Some(writes), ..self }
    }

    /// From now on all is well.
    pub(crate) fn end(&self) {
        self.on.store(false, Ordering::Relaxed);
    }

    /// A number below `bound`.
    pub(crate) fn below(&self, bound: usize) -> usize {
        self.dice.below(bound)
    }

    /// What becomes of the next write of someone who has begun so many.
    fn fate(&self, begun: usize) -> Fate {
        if !self.on.load(Ordering::Relaxed) {
            return Fate::Answered;
        }
        if self.life.is_some_and(|life| begun + 1 >= life) {
            return Fate::Died { sent: self.below(2) == 0 };
        }
        match self.below(4 * self.one_in) {
            0 => Fate::Unreachable,
            1 => Fate::Refused,
            2 | 3 => Fate::AnswerLost,
            _ => Fate::Answered,
        }
    }

    /// A client whose writes fail; `death` is told of the one that its user died of.
    fn client(&self, reliable: &Client, death: &Arc<Notify>) -> Client {
        let (faults, reliable, death) = (self.clone(), reliable.clone(), Arc::clone(death));
        let mut begun = 0;
        let service = service_fn(move |request: Request<Body>| {
            let fate = if request.method() == Method::GET { Fate::Answered } else { faults.fate(begun) };
            begun += usize::from(request.method() != Method::GET);
            let (reliable, death) = (reliable.clone(), Arc::clone(&death));
            async move {
                match fate {
                    Fate::Answered => Ok(reliable.send(request).await?),
                    Fate::Unreachable => Err(BoxError::from("the server could not be reached")),
                    Fate::Refused => Ok(unavailable()),
                    Fate::AnswerLost => {
                        reliable.send(request).await?;
                        Err(BoxError::from("the connection was lost before the answer came"))
                    }
                    Fate::Died { sent } => {
                        if sent {
                            reliable.send(request).await?;
                        }
                        death.notify_one();
                        std::future::pending().await
                    }
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

/// Controllers that run apart from the others of a cluster, one life after the other, until this is dropped.
pub(crate) struct Apart {
    death: Arc<Notify>,
    _lives: JoinSet<()>,
}

impl Apart {
    /// Starts the controllers called `names`, on a client whose writes fail.
    pub(crate) fn start(world: &World, names: &'static str, faults: &Faults) -> Self {
        let death = Arc::new(Notify::new());
        let mut lives = JoinSet::new();
        let (client, world) = (world.client.clone(), world.cluster.world().clone());
        let (faults, dead) = (faults.clone(), Arc::clone(&death));
        lives.spawn(async move {
            loop {
                let mut manager = Manager::in_process(faults.client(&client, &dead), world.clone());
                for builtin in kubewright_controllers::select(names).expect("known names") {
                    for controller in builtin.controllers(&setup()) {
                        manager.add(controller);
                    }
                }
                // Dropping the manager's future ends its reconciles between two writes.
                tokio::select! {
                    biased;
                    () = dead.notified() => {}
                    ended = manager.run(CancellationToken::new()) => panic!("the manager ended: {ended:?}"),
                }
            }
        });
        Self { death, _lives: lives }
    }

    /// Ends them, wherever they are, and starts them anew: they remember nothing.
    pub(crate) fn restart(&self) {
        self.death.notify_one();
    }
}

/// Looks at all objects of a kind after every single change; what `judge` says against them is kept.
pub(crate) struct Witness(Arc<parking_lot::Mutex<Vec<String>>>);

impl Witness {
    pub(crate) fn of<K>(
        world: &World,
        judge: impl FnMut(&BTreeMap<String, K>) -> Result<(), String> + Send + 'static,
    ) -> Self
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let complaints = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let (api, heard) = (world.api::<K>(), Arc::clone(&complaints));
        tokio::spawn(async move { watch(&api, judge, &heard).await });
        Self(complaints)
    }

    /// What was said so far.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

async fn watch<K>(
    api: &Api<K>,
    mut judge: impl FnMut(&BTreeMap<String, K>) -> Result<(), String>,
    heard: &parking_lot::Mutex<Vec<String>>,
) where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let list = api.list(&kube::api::ListParams::default()).await.expect("a list");
    let mut version = list.metadata.resource_version.unwrap_or_default();
    let mut objects: BTreeMap<_, _> =
        list.items.into_iter().map(|object| (object.name_any(), object)).collect();
    loop {
        let Ok(stream) = api.watch(&WatchParams::default(), &version).await else { return };
        let mut events = std::pin::pin!(stream);
        while let Ok(Some(event)) = events.try_next().await {
            let (WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) =
                &event
            else {
                continue;
            };
            version = object.resource_version().unwrap_or_default();
            if matches!(event, WatchEvent::Deleted(_)) {
                objects.remove(&object.name_any());
            } else {
                objects.insert(object.name_any(), object.clone());
            }
            if let Err(complaint) = judge(&objects) {
                heard.lock().push(complaint);
            }
        }
    }
}
