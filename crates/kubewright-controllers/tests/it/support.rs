//! A cluster to test in, and short ways to its objects.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use kubewright_cluster::{Builder, Cluster, KubernetesVersion};
use kubewright_controllers::Setup;
use kubewright_identity::authn::{ServiceAccounts, TokenKey};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What controllers are told that are run by hand.
pub(crate) fn setup() -> Setup {
    let accounts = Arc::new(ServiceAccounts::new(TokenKey::generate().expect("a key")));
    Setup {
        ca: String::new(),
        nodes: 0,
        all_nodes: false,
        accounts,
        authority: None,
        kubernetes: kubewright_spec::Version::DEFAULT,
        resets: None,
    }
}

/// A cluster that has come to rest after its start.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) client: Client,
}

impl World {
    /// With these of the built-in controllers.
    pub(crate) async fn with(controllers: &str) -> Self {
        Self::with_nodes(controllers, 1).await
    }

    /// With these of the built-in controllers and so many nodes.
    pub(crate) async fn with_nodes(controllers: &str, nodes: usize) -> Self {
        Self::at_rest(Cluster::builder().controllers(controllers).nodes(nodes)).await
    }

    /// With all of them and one node, of a version.
    pub(crate) async fn of(version: KubernetesVersion) -> Self {
        Self::at_rest(Cluster::builder().kubernetes_version(version).nodes(1)).await
    }

    /// With what is asked for.
    pub(crate) async fn at_rest(builder: Builder) -> Self {
        let cluster = builder.start().await.expect("a cluster");
        let client = cluster.client();
        let world = Self { cluster, client };
        world.settle().await;
        world
    }

    /// With all of them.
    pub(crate) async fn start() -> Self {
        Self::with("*").await
    }

    pub(crate) async fn settle(&self) {
        self.cluster.settle().await;
    }

    /// The objects of a kind in the namespace `default`.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Serialize,
    {
        let object: K = kubewright_objects::from_value(object).expect("an object");
        self.api::<K>().create(&PostParams::default(), &object).await.expect("created")
    }

    pub(crate) async fn merge<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched")
    }

    pub(crate) async fn merge_status<K>(&self, name: &str, status: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let patch = Patch::Merge(json!({"status": status}));
        self.api::<K>().patch_status(name, &PatchParams::default(), &patch).await.expect("patched")
    }

    pub(crate) async fn names<K>(&self) -> Vec<String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        self.all::<K>().await.iter().filter_map(|object| object.meta().name.clone()).collect()
    }

    pub(crate) async fn all<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().list(&ListParams::default()).await.expect("a list").items
    }

    pub(crate) async fn is_there<K>(&self, name: &str) -> bool
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().get_opt(name).await.expect("an answer").is_some()
    }

    /// Makes a class `simulated` whose claims get a volume at once.
    pub(crate) async fn storage_class(&self) {
        let class = json!({"metadata": {"name": "simulated"}, "provisioner": "simulated.kubewright.dev"});
        let class = kubewright_objects::from_value(class).expect("a class");
        let classes = Api::<k8s_openapi::api::storage::v1::StorageClass>::all(self.client.clone());
        classes.create(&PostParams::default(), &class).await.expect("created");
    }

    /// Type, reason and message of every event about objects of this kind.
    pub(crate) async fn events(&self, kind: &str) -> Vec<(String, String)> {
        let events = self.all::<k8s_openapi::api::core::v1::Event>().await;
        let of_kind = events.into_iter().filter(|event| event.involved_object.kind.as_deref() == Some(kind));
        of_kind.map(|event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default())).collect()
    }
}

/// A Deployment `web` of this many pods.
pub(crate) fn deployment(replicas: i32) -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template("web:1"),
        },
    })
}

/// A pod template labelled `app=web` with one container.
pub(crate) fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

/// `status.phase`.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}
