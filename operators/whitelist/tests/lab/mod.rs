//! A cluster with the operator in it, under its own service account and rights, in virtual time.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::Pod,
        events::v1::Event,
    },
    serde::de::DeserializeOwned,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
};
use kubewright::{
    CancellationToken, Context, Controller, Error, Key, Manager, Outcome, Reconciler, command::Installation,
    testing::Cluster,
};
use kubewright_whitelist::{WhiteList, WhiteListReconciler, WhiteListSpec, operator};
use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

/// How much virtual time the cluster gets to do something.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the operator is installed.
pub(crate) const HOME: &str = "whitelist-system";

pub(crate) struct Lab {
    pub(crate) client: Client,
    pub(crate) whitelists: Api<WhiteList>,
    pub(crate) deployments: Api<Deployment>,
    pub(crate) replica_sets: Api<ReplicaSet>,
    pub(crate) pods: Api<Pod>,
    pub(crate) events: Api<Event>,
    /// Which keys were reconciled, in order.
    pub(crate) reconciled: Arc<Mutex<Vec<Key>>>,
    cluster: Cluster,
    _stop: DropGuard,
}

impl Lab {
    /// A cluster with all built-in controllers, one node, and the operator.
    pub(crate) async fn start() -> Self {
        Self::with(|mut manager, reconciled| {
            let observed = Observed(WhiteListReconciler::default(), reconciled);
            manager.add(Controller::new("whitelist", observed).for_kind::<WhiteList>().owns::<Deployment>());
            manager
        })
        .await
    }

    /// A cluster as that of [`Lab::start`] with what `fill` makes of a manager.
    pub(crate) async fn with(fill: impl FnOnce(Manager, Arc<Mutex<Vec<Key>>>) -> Manager) -> Self {
        let cluster = Cluster::start().await.expect("the cluster starts");
        let client = cluster.client();
        for object in operator().prerequisites(&Installation::default()).expect("the manifests are objects") {
            install(&client, &object).await;
        }
        let reconciled = Arc::default();
        let stop = CancellationToken::new();
        let client_of_operator = cluster.client_of_service_account(HOME, operator().name());
        let manager = Manager::new(client_of_operator, cluster.world().clone());
        let manager = fill(manager, Arc::clone(&reconciled));
        tokio::spawn(manager.run(stop.clone()));
        Self {
            whitelists: Api::namespaced(client.clone(), "default"),
            deployments: Api::namespaced(client.clone(), "default"),
            replica_sets: Api::namespaced(client.clone(), "default"),
            pods: Api::namespaced(client.clone(), "default"),
            events: Api::namespaced(client.clone(), "default"),
            client,
            reconciled,
            cluster,
            _stop: stop.drop_guard(),
        }
    }

    /// Waits until nothing moves any more.
    pub(crate) async fn settle(&self) {
        self.cluster.settle().await;
    }

    pub(crate) async fn create(&self, name: &str, spec: WhiteListSpec) -> WhiteList {
        let created = self.whitelists.create(&PostParams::default(), &WhiteList::new(name, spec)).await;
        created.expect("a WhiteList is created")
    }

    /// Creates the WhiteList `name` and waits until it is ready; gives its Deployment.
    pub(crate) async fn ready(&self, name: &str) -> Deployment {
        self.create(name, WhiteListSpec::default()).await;
        self.until_ready(name).await;
        self.deployment(&format!("{name}-deployment")).await
    }

    pub(crate) async fn until_ready(&self, name: &str) {
        let is_ready = |list: &WhiteList| list.status.as_ref().is_some_and(|status| status.ready);
        eventually("the WhiteList is ready", || async {
            self.whitelists.get(name).await.ok().filter(is_ready)
        })
        .await;
    }

    pub(crate) async fn deployment(&self, name: &str) -> Deployment {
        self.deployments.get(name).await.expect("the Deployment is there")
    }

    /// The condition `type_` of the WhiteList `name`: its status and reason.
    pub(crate) async fn condition(&self, name: &str, type_: &str) -> (String, String) {
        let status = self.whitelists.get(name).await.expect("a WhiteList").status.unwrap_or_default();
        let found = status.conditions.into_iter().find(|condition| condition.type_ == type_);
        found.map(|condition| (condition.status, condition.reason)).unwrap_or_default()
    }

    /// The notes of the Events with this reason.
    pub(crate) async fn notes(&self, reason: &str) -> Vec<String> {
        let events = all(&self.events).await;
        let events = events.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
        events.filter_map(|event| event.note).collect()
    }
}

/// Changes an object by a merge patch.
pub(crate) async fn patch<K>(api: &Api<K>, name: &str, patch: Value) -> K
where
    K: Clone + Debug + DeserializeOwned,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("the patch is taken")
}

pub(crate) async fn all<K>(api: &Api<K>) -> Vec<K>
where
    K: Clone + Debug + DeserializeOwned,
{
    api.list(&ListParams::default()).await.expect("a list").items
}

/// Looks again and again, in virtual time, until there is something; gives it.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, look: impl Fn() -> F) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("never: {what}"))
}

/// The sample's spec.
pub(crate) fn sample() -> WhiteListSpec {
    WhiteListSpec { foo: Some("bar".to_owned()), ..WhiteListSpec::default() }
}

/// The image of the only container of each Deployment.
pub(crate) fn images(deployment: &Deployment) -> Vec<String> {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()).expect("a pod");
    pod.containers.iter().filter_map(|container| container.image.clone()).collect()
}

/// A Deployment of nobody, of the given name.
pub(crate) fn foreign(name: &str) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "foreign"}},
            "template": {
                "metadata": {"labels": {"app": "foreign"}},
                "spec": {"containers": [{"name": "foreign", "image": "foreign"}]},
            },
        },
    }))
    .expect("a Deployment")
}

pub(crate) fn uid<K: Resource>(object: &K) -> String {
    object.uid().expect("a stored object")
}

pub(crate) async fn install(client: &Client, object: &DynamicObject) {
    let types = object.types.as_ref().expect("a kind");
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types).expect("a kind"));
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    api.create(&PostParams::default(), object).await.expect("a manifest is taken");
}

/// Writes down which keys are reconciled.
struct Observed(WhiteListReconciler, Arc<Mutex<Vec<Key>>>);

impl Reconciler for Observed {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        self.1.lock().expect("no panic before").push(key.clone());
        self.0.reconcile(ctx, key).await
    }
}
