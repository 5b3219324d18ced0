//! The namespaces of a manager, which come and go while it runs.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Weak},
};

use kubewright_meta::text;
use parking_lot::Mutex;

use crate::Error;

/// A set of namespaces that managers look at, and that changes while they run. Clones share it. Hand it to
/// [`Manager::follow_namespaces`](crate::Manager::follow_namespaces) or
/// [`Operator::follow_namespaces`](crate::command::Operator::follow_namespaces), and to whoever finds out which there are.
///
/// When a namespace is **added**, its objects are listed and watched. A controller [for a kind](crate::Controller::for_kind) in it works on
/// that kind's objects there once all caches that the controller needs are filled there, as at the start; other namespaces go on meanwhile. When
/// one is **removed**, its watches end, and what is due for keys in it is not done any more; a reconcile that is under way may finish. Its
/// objects are "not there" from then on: controllers whose own kind is elsewhere are woken for each of them, as if it had been deleted. Nothing in the
/// cluster is changed.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
/// use kubewright_runtime::{Context, Controller, Error, Key, Manager, Namespaces, Outcome, Reconciler};
///
/// /// Follows the namespaces that have the label `team`.
/// struct Teams(Namespaces);
///
/// impl Reconciler for Teams {
///     async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
///         let namespace = ctx.get::<Namespace>(key);
///         let is_teams = |namespace: &Namespace| namespace.metadata.labels.iter().flatten().any(|(name, _)| name == "team");
///         match namespace.is_some_and(|namespace| is_teams(&namespace)) {
///             true => self.0.add(&key.name)?,
///             false => self.0.remove(&key.name),
///         };
///         Ok(Outcome::Done)
///     }
/// }
///
/// # fn example(manager: &mut Manager, maps: Controller) {
/// let namespaces = Namespaces::default();
/// manager.follow_namespaces(&namespaces);
/// manager.add(Controller::new("teams", Teams(namespaces)).for_kind::<Namespace>());
/// manager.add(maps.for_kind::<ConfigMap>());
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Namespaces(Arc<Inner>);

#[derive(Default)]
struct Inner {
    present: Mutex<BTreeSet<String>>,
    /// Who follows it. Locked while a namespace comes or goes.
    followers: Mutex<Followers>,
}

#[derive(Default)]
struct Followers {
    gatekeepers: Vec<Weak<dyn Gatekeeper>>,
    caches: Vec<Weak<dyn InNamespaces>>,
}

/// What has a part for each namespace.
pub(crate) trait InNamespaces: Send + Sync {
    /// A namespace has come.
    fn joined(&self, namespace: &str);

    /// A namespace has gone, unless it is there again.
    fn left(&self, namespace: &str);
}

/// What lets keys of a namespace through.
pub(crate) trait Gatekeeper: Send + Sync {
    /// Lets none of this namespace through any more.
    fn close(&self, namespace: &str);

    /// Lets those of this namespace through once the caches are filled there.
    fn open_when_filled(&self, namespace: &str);
}

impl Namespaces {
    /// These namespaces, to begin with.
    #[must_use]
    pub fn new<N: Into<String>>(namespaces: impl IntoIterator<Item = N>) -> Self {
        let present = Mutex::new(namespaces.into_iter().map(Into::into).collect());
        Self(Arc::new(Inner { present, followers: Mutex::default() }))
    }

    /// Adds a namespace; `false` if it is there already. It need not exist: it is looked at until it is removed. That it cannot be
    /// looked at, for want of rights say, is in the log.
    ///
    /// # Errors
    /// [`Error::Misconfigured`]: a name that no namespace can have.
    ///
    /// # Panics
    /// Outside a tokio runtime, while a manager runs.
    pub fn add(&self, namespace: &str) -> Result<bool, Error> {
        check(namespace)?;
        let followers = self.0.followers.lock();
        if !self.0.present.lock().insert(namespace.to_owned()) {
            return Ok(false);
        }
        followers.gatekeepers().for_each(|gatekeeper| gatekeeper.close(namespace));
        followers.caches().for_each(|cache| cache.joined(namespace));
        followers.gatekeepers().for_each(|gatekeeper| gatekeeper.open_when_filled(namespace));
        Ok(true)
    }

    /// Takes a namespace away; `false` if it is not there.
    pub fn remove(&self, namespace: &str) -> bool {
        let caches: Vec<_> = {
            let followers = self.0.followers.lock();
            if !self.0.present.lock().remove(namespace) {
                return false;
            }
            followers.gatekeepers().for_each(|gatekeeper| gatekeeper.close(namespace));
            followers.caches().collect()
        };
        // Without the lock, as they call who watches. Should the namespace be there again, they leave it as it is.
        caches.iter().for_each(|cache| cache.left(namespace));
        true
    }

    /// Whether it is there now.
    pub(crate) fn has(&self, namespace: &str) -> bool {
        self.0.present.lock().contains(namespace)
    }

    /// All that there are now, sorted.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.0.present.lock().iter().cloned().collect()
    }

    /// What is wrong with the names.
    pub(crate) fn mistake(&self) -> Option<String> {
        self.all().iter().find_map(|name| check(name).err()).map(|error| error.to_string())
    }

    /// Tells a cache from now on, as long as it is there.
    pub(crate) fn add_cache(&self, cache: Weak<dyn InNamespaces>) {
        let mut followers = self.0.followers.lock();
        followers.caches.retain(|cache| cache.strong_count() > 0);
        followers.caches.push(cache);
    }

    /// Tells a gatekeeper from now on, as long as it is there.
    pub(crate) fn add_gatekeeper(&self, gatekeeper: Weak<dyn Gatekeeper>) {
        let mut followers = self.0.followers.lock();
        followers.gatekeepers.retain(|gatekeeper| gatekeeper.strong_count() > 0);
        followers.gatekeepers.push(gatekeeper);
    }
}

impl Followers {
    fn gatekeepers(&self) -> impl Iterator<Item = Arc<dyn Gatekeeper>> {
        self.gatekeepers.iter().filter_map(Weak::upgrade)
    }

    fn caches(&self) -> impl Iterator<Item = Arc<dyn InNamespaces>> {
        self.caches.iter().filter_map(Weak::upgrade)
    }
}

/// Whether a namespace can have this name (`ValidateNamespaceName` of `k8s.io/kubernetes/pkg/apis/core/validation`).
fn check(namespace: &str) -> Result<(), Error> {
    match text::label(namespace).as_slice() {
        [] => Ok(()),
        mistakes => Err(Error::Misconfigured(format!(
            "{namespace:?} is no name of a namespace: {}",
            mistakes.join(", ")
        ))),
    }
}

impl PartialEq for Namespaces {
    /// Whether it is the same set, whatever is in it.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.all()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_there_once_and_has_a_name_that_a_namespace_can_have() {
        let namespaces = Namespaces::new(["b"]);
        assert!(namespaces.add("a-1").unwrap());
        assert!(!namespaces.add("b").unwrap());
        assert_eq!(namespaces.all(), ["a-1", "b"]);
        assert!(namespaces.remove("b") && !namespaces.remove("b"));
        for name in ["", "-a", "a-", "A", "a.b", "a/b", &"a".repeat(64)] {
            assert!(namespaces.add(name).is_err(), "{name}");
        }
        assert_eq!(namespaces.all(), ["a-1"]);
        assert!(Namespaces::new(["A"]).mistake().is_some());
    }
}
