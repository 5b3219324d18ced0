//! The contexts of a controller in several clusters.

use std::{collections::BTreeMap, sync::Arc};

use kube::Client;
use parking_lot::RwLock;

use super::{Context, Inner, Kinds};
use crate::{Cache, Error, Key, source::Sink};

/// The contexts of a controller by cluster, as clusters come and go.
pub(crate) struct ClusterContexts {
    home: Arc<Inner>,
    members: RwLock<BTreeMap<Arc<str>, Arc<Inner>>>,
}

impl ClusterContexts {
    pub(super) fn new(home: Arc<Inner>) -> Self {
        Self { home, members: RwLock::default() }
    }

    /// A cluster has come.
    pub(crate) fn add(&self, cluster: &Arc<str>, sink: Sink, client: Client, cache: Cache, kinds: Kinds) {
        let (world, events, rights) =
            (self.home.world.clone(), self.home.events.clone(), self.home.rights.clone());
        let inner =
            Inner { cluster: Some(cluster.clone()), sink, client, world, cache, kinds, events, rights };
        self.members.write().insert(cluster.clone(), Arc::new(inner));
    }

    /// A cluster has gone.
    pub(crate) fn remove(&self, cluster: &str) {
        self.members.write().remove(cluster);
    }

    /// The client of a cluster.
    pub(crate) fn client(&self, cluster: &str) -> Option<Client> {
        self.members.read().get(cluster).map(|inner| inner.client.clone())
    }
}

impl Context {
    /// The cluster that it reads and writes, where that is not the manager's own.
    #[must_use]
    pub fn cluster(&self) -> Option<&str> {
        self.0.cluster.as_deref()
    }

    /// The names of the [further clusters](crate::Clusters) that there are now, sorted.
    #[must_use]
    pub fn clusters(&self) -> Vec<Arc<str>> {
        self.3.members.read().keys().cloned().collect()
    }

    /// This context in a further cluster: reads are from its caches, of the kinds that the controller looks at there, and writes, finalizers and Events
    /// go there, with all guarantees. `None` when there is no such cluster, or not any more.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Error};
    /// # async fn example(ctx: &Context, wanted: &ConfigMap) -> Result<(), Error> {
    /// for name in ctx.clusters() {
    ///     if let Some(edge) = ctx.in_cluster(&name) {
    ///         edge.apply(wanted).await?;
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn in_cluster(&self, name: &str) -> Option<Self> {
        let inner = self.3.members.read().get(name)?.clone();
        Some(self.with(inner))
    }

    /// This context in the manager's own cluster.
    #[must_use]
    pub fn home(&self) -> Self {
        self.with(self.3.home.clone())
    }

    fn with(&self, inner: Arc<Inner>) -> Self {
        Self(inner, self.1.clone(), self.2.clone(), self.3.clone())
    }

    /// The context of a key's cluster, if that is there.
    pub(crate) fn of(&self, key: &Key) -> Option<Self> {
        match &key.cluster {
            None => Some(self.clone()),
            Some(cluster) => self.in_cluster(cluster),
        }
    }

    pub(crate) fn cluster_contexts(&self) -> &Arc<ClusterContexts> {
        &self.3
    }

    /// An error if a key is of another cluster.
    pub(crate) fn expect_here(&self, key: &Key) -> Result<(), Error> {
        match &key.cluster {
            Some(cluster) if self.0.cluster.as_ref() != Some(cluster) => Err(Error::terminal(format!(
                "the key {key} is of the cluster {cluster}, and the context is of {}: ask ctx.in_cluster({cluster:?})",
                self.0
                    .cluster
                    .as_ref()
                    .map_or_else(|| "the manager's own".to_owned(), |own| format!("the cluster {own}")),
            ))),
            _ => Ok(()),
        }
    }
}
