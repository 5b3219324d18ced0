//! A cluster with an operator in it, as it is deployed: under its own service account and rights, in virtual time.

use std::{fmt::Debug, time::Duration};

use k8s_openapi::{api::events::v1::Event, serde::de::DeserializeOwned};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
    core::NamespaceResourceScope,
};
use kubewright::{
    CancellationToken, Counters, Manager, Metrics, Object,
    command::{Installation, Operator, Run},
    testing::{Builder, Cluster},
};
use serde_json::Value;
use tokio_util::sync::DropGuard;

/// How much virtual time the cluster gets to do something.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Lab {
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
    pub(crate) metrics: Metrics,
    pub(crate) counters: Counters,
    stop: CancellationToken,
    _end: DropGuard,
}

impl Lab {
    /// A cluster with all built-in controllers, one node, and the operator.
    pub(crate) async fn start(operator: fn() -> Operator) -> Self {
        Self::with(Cluster::builder(), operator, |_, _| {}).await
    }

    /// A cluster that `builder` makes, with the operator, whose manager `fill` adds to.
    pub(crate) async fn with(
        builder: Builder,
        operator: fn() -> Operator,
        fill: impl FnOnce(&Cluster, &mut Manager),
    ) -> Self {
        let cluster = builder.start().await.expect("the cluster starts");
        let client = cluster.client();
        for part in [
            Installation { crds_only: true, ..Installation::default() },
            Installation { rights_only: true, ..Installation::default() },
        ] {
            for object in operator().manifests(&part).expect("manifests") {
                create(&client, &object).await;
            }
        }
        let mut lab = Self {
            metrics: Metrics::new(),
            counters: Counters::default(),
            stop: CancellationToken::new(),
            _end: CancellationToken::new().drop_guard(),
            client,
            cluster,
        };
        lab.run(operator, fill);
        lab
    }

    /// Runs the operator, which may have been ended before.
    pub(crate) fn run(&mut self, operator: fn() -> Operator, fill: impl FnOnce(&Cluster, &mut Manager)) {
        self.stop = CancellationToken::new();
        self._end = self.stop.clone().drop_guard();
        let operator = operator();
        let name = operator.name().to_owned();
        let namespace = format!("{name}-system");
        let client = self.cluster.client_of_service_account(&namespace, &name);
        let manager = Manager::new(client, self.cluster.world().clone());
        let run = Run {
            leader_elect: true,
            leader_elect_resource_namespace: Some(namespace),
            ..Run::default()
        };
        let mut manager = operator.manager(manager, &run).expect("it makes sense");
        fill(&self.cluster, &mut manager);
        (self.metrics, self.counters) = (manager.metrics().clone(), manager.counters().clone());
        tokio::spawn(manager.run(self.stop.clone()));
    }

    /// Ends the operator.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.settle().await;
    }

    /// Waits until nothing moves any more.
    pub(crate) async fn settle(&self) {
        self.cluster.settle().await;
    }

    pub(crate) fn api<K: Object + kube::Resource<Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        self.api_in("default")
    }

    pub(crate) fn api_in<K: Object + kube::Resource<Scope = NamespaceResourceScope>>(
        &self,
        namespace: &str,
    ) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Creates the objects of a YAML text, in their own namespace or in `default`.
    pub(crate) async fn apply(&self, yaml: &str) {
        for document in yaml.split("---\n").filter(|text| !text.trim().is_empty()) {
            create(&self.client, &serde_saphyr::from_str(document).expect("YAML")).await;
        }
    }

    /// Creates an object, which the server may refuse.
    pub(crate) async fn try_create(&self, object: Value) -> Result<DynamicObject, String> {
        let object = serde_json::from_value(object).expect("an object");
        try_create(&self.client, &object).await
    }

    /// The notes of the Events of this reason, in all namespaces, sorted.
    pub(crate) async fn notes(&self, reason: &str) -> Vec<String> {
        let events = all(&Api::<Event>::all(self.client.clone())).await;
        let events = events.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
        let mut notes: Vec<String> = events.filter_map(|event| event.note).collect();
        notes.sort();
        notes
    }

    /// Waits until there is something, in virtual time; gives it.
    pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
        &self,
        what: &str,
        look: impl Fn() -> F,
    ) -> T {
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
}

pub(crate) async fn all<K>(api: &Api<K>) -> Vec<K>
where
    K: Clone + Debug + DeserializeOwned,
{
    api.list(&ListParams::default()).await.expect("a list").items
}

/// The names of all objects.
pub(crate) async fn names<K: Object>(api: &Api<K>) -> Vec<String> {
    all(api).await.iter().map(ResourceExt::name_any).collect()
}

/// Changes an object by a merge patch.
pub(crate) async fn patch<K>(api: &Api<K>, name: &str, patch: Value) -> K
where
    K: Clone + Debug + DeserializeOwned,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("the patch is taken")
}

async fn create(client: &Client, object: &DynamicObject) {
    try_create(client, object).await.expect("it is taken");
}

async fn try_create(client: &Client, object: &DynamicObject) -> Result<DynamicObject, String> {
    let types = object.types.as_ref().expect("a kind");
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types).expect("a kind"));
    let is_global = types.kind.starts_with("Cluster")
        || ["CustomResourceDefinition", "Namespace"].contains(&types.kind.as_str());
    let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
    let api: Api<DynamicObject> = match is_global {
        false => Api::namespaced_with(client.clone(), &namespace, &kind),
        true => Api::all_with(client.clone(), &kind),
    };
    match api.create(&PostParams::default(), object).await {
        Ok(created) => Ok(created),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(other) => panic!("{other}"),
    }
}
