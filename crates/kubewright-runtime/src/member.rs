//! Clusters beside the one that a manager is for.

use std::{fmt, sync::Arc};

use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::Cache;

/// Another cluster of a manager, with a client and caches of its own. Made by [`Manager::add_cluster`](crate::Manager::add_cluster)
/// and [`Clusters::add`](crate::Clusters::add); clones share it.
///
/// A controller that works on objects in other clusters says [`Controller::in_each_cluster`](crate::Controller::in_each_cluster) or
/// [`Controller::watches_in_each`](crate::Controller::watches_in_each). Here one looks at a certain cluster:
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::{Controller, Key, Manager};
/// # use kubewright_runtime::{Context, Error, Member, Outcome, Reconciler};
/// # struct Mirror(Member);
/// # impl Reconciler for Mirror {
/// #     async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> { Ok(Outcome::Done) }
/// # }
/// # fn example(manager: &mut Manager, edge: kube::Client) {
/// let edge = manager.add_cluster("edge", edge);
/// // In the reconciler, `edge.cache().get::<ConfigMap>(key)` is what is there.
/// let controller = Controller::new("mirror", Mirror(edge.clone()))
///     .for_kind::<ConfigMap>()
///     .watches_in(&edge, |map: &ConfigMap| vec![Key::of(map)]);
/// manager.add(controller);
/// # }
/// ```
#[derive(Clone)]
pub struct Member(Arc<Inner>);

struct Inner {
    name: String,
    client: Client,
    cache: Cache,
    /// Ends its caches.
    stop: CancellationToken,
}

impl Member {
    pub(crate) fn new(name: String, client: Client, cache: Cache, stop: CancellationToken) -> Self {
        Self(Arc::new(Inner { name, client, cache, stop }))
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }

    /// What the manager calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its client. Writes by it are not fenced, and not merged into the cache.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// Its caches: of every kind that a controller looks at [in it](crate::Controller::watches_in).
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.0.cache
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("name", &self.0.name).finish_non_exhaustive()
    }
}
