//! The clusters of a manager beside its own, which come and go while it runs.

use std::{collections::BTreeMap, fmt, sync::Arc};

use kube::Client;
use kubewright_world::World;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    Cache, Error, Member,
    cache::{Connection, Reach},
    metrics::RequestMetrics,
};

/// The clusters of a manager beside its own: they can come and go while it runs. Made by
/// [`Manager::clusters`](crate::Manager::clusters); clones share them.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::{Clusters, Context, Controller, Error, Key, Manager, Outcome, Reconciler};
///
/// struct Greeter;
///
/// impl Reconciler for Greeter {
///     async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
///         // `ctx` is of the key's cluster.
///         let Some(map) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
///         println!("{:?} in {:?}", map.metadata.name, ctx.cluster());
///         Ok(Outcome::Done)
///     }
/// }
///
/// # fn example(manager: &mut Manager, edge: kube::Client) -> Result<(), Error> {
/// manager.add(Controller::new("greeter", Greeter).for_kind::<ConfigMap>().in_each_cluster());
/// let clusters: Clusters = manager.clusters().clone(); // for whoever finds out which there are
/// clusters.add("edge", edge)?;
/// clusters.remove("edge");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Clusters(Arc<Inner>);

struct Inner {
    requests: RequestMetrics,
    world: World,
    /// Ends the caches of all.
    stop: CancellationToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    members: BTreeMap<Arc<str>, Member>,
    /// In which namespaces kinds are watched.
    reach: Reach,
    /// Whether objects are kept as values.
    as_values: bool,
    is_started: bool,
    /// Whoever looks at each.
    followers: Vec<Arc<dyn Follower>>,
}

/// A part of a manager that looks at each of its clusters.
pub(crate) trait Follower: Send + Sync {
    /// A cluster has come. Its caches are not started yet.
    fn joined(&self, member: &Member);

    /// A cluster has gone. Its caches have ended.
    fn left(&self, name: &str);

    /// Looks at its own objects once more, as a cluster has gone. It is called without a lock: what it calls may ask for clusters.
    fn look_again(&self);
}

impl Clusters {
    pub(crate) fn new(requests: RequestMetrics, world: World, stop: CancellationToken) -> Self {
        Self(Arc::new(Inner { requests, world, stop, state: Mutex::default() }))
    }

    /// Adds a cluster, under a name that is in keys, logs and metrics. While the manager runs, its controllers begin to work there once the
    /// caches that they need are filled; those that [look at each](crate::Controller::watches_in_each) are called for all of their own objects
    /// once more.
    ///
    /// # Errors
    /// [`Error::Misconfigured`]: a name that is empty, or another cluster's; a manager that has ended.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn add(&self, name: impl Into<String>, client: Client) -> Result<Member, Error> {
        let name = name.into();
        let mut state = self.0.state.lock();
        if self.0.stop.is_cancelled() {
            return Err(Error::Misconfigured(format!(
                "the manager has ended: it does not work in {name} any more"
            )));
        }
        if name.is_empty() || state.members.contains_key(&*name) {
            return Err(Error::Misconfigured(match name.is_empty() {
                true => "a cluster needs a name".to_owned(),
                false => format!("there is a cluster {name} already: remove it first"),
            }));
        }
        let member = self.make(&state, name.clone(), client);
        state.members.insert(name.into(), member.clone());
        state.followers.iter().for_each(|follower| follower.joined(&member));
        if state.is_started {
            member.cache().start();
        }
        Ok(member)
    }

    /// Takes a cluster away: its watches end, what is due there is not done any more, and controllers that look at each are called for all of their own
    /// objects once more. A reconcile that is under way may finish. Nothing in the cluster is changed. Whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        let followers = {
            let mut state = self.0.state.lock();
            let Some(member) = state.members.remove(name) else { return false };
            member.stop().cancel();
            state.followers.iter().for_each(|follower| follower.left(name));
            state.followers.clone()
        };
        followers.iter().for_each(|follower| follower.look_again());
        true
    }

    /// The cluster of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Member> {
        self.0.state.lock().members.get(name).cloned()
    }

    /// All that there are now, sorted by name.
    #[must_use]
    pub fn all(&self) -> Vec<Member> {
        self.0.state.lock().members.values().cloned().collect()
    }

    /// A cluster of this manager that is not among them.
    pub(crate) fn unlisted(&self, name: String, client: Client) -> Member {
        self.make(&self.0.state.lock(), name, client)
    }

    fn make(&self, state: &State, name: String, client: Client) -> Member {
        let client = self.0.requests.client(client, &name);
        let stop = self.0.stop.child_token();
        let cache = Cache::new(client.clone(), Connection::Network, self.0.world.clone(), stop.clone());
        cache.restrict(state.reach.clone());
        if state.as_values {
            cache.keep_values();
        }
        Member::new(name, client, cache, stop)
    }

    /// As [`Manager::watch_namespaces`](crate::Manager::watch_namespaces); whether that came in time for all.
    pub(crate) fn restrict(&self, reach: &Reach) -> bool {
        let mut state = self.0.state.lock();
        state.reach.clone_from(reach);
        let members = state.members.values();
        let in_time: Vec<bool> = members.map(|member| member.cache().restrict(reach.clone())).collect();
        !in_time.contains(&false)
    }

    /// As [`Manager::as_values`](crate::Manager::as_values); whether that came in time for all.
    pub(crate) fn keep_values(&self) -> bool {
        let mut state = self.0.state.lock();
        state.as_values = true;
        let in_time: Vec<bool> = state.members.values().map(|member| member.cache().keep_values()).collect();
        !in_time.contains(&false)
    }

    /// Tells a follower of all that there are, and of each that comes and goes.
    pub(crate) fn follow(&self, follower: Arc<dyn Follower>) {
        let mut state = self.0.state.lock();
        state.members.values().for_each(|member| follower.joined(member));
        state.followers.push(follower);
    }

    /// Tells nobody any more: the manager has ended.
    pub(crate) fn end(&self) {
        // Dropped without the lock, as they may hold what asks for clusters.
        let followers = std::mem::take(&mut self.0.state.lock().followers);
        drop(followers);
    }

    /// Starts the caches of all, and from now on of each that comes.
    pub(crate) fn start(&self) {
        let mut state = self.0.state.lock();
        state.is_started = true;
        state.members.values().for_each(|member| member.cache().start());
    }
}

impl fmt::Debug for Clusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.state.lock().members.keys()).finish()
    }
}
