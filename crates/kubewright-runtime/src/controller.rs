//! A controller: which events lead to which keys, and what is done about a key.

use std::{any::type_name, sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream::BoxStream};
use k8s_openapi::api::{core, events};
use kube::Client;

use crate::{
    Key, Member, Object, Predicate, Reconciler,
    events::Form,
    owner,
    rbac::{Rights, Subject, Verb},
    reconciler::DynReconciler,
    source::{Kind, KindSource},
};

/// A controller, put together by chaining and handed to [`crate::Manager::add`].
///
/// ```
/// use k8s_openapi::api::{apps::v1::{Deployment, ReplicaSet}, core::v1::Pod};
/// use kubewright_runtime::{Controller, Key, predicate};
/// # use kubewright_runtime::{Context, Error, Outcome, Reconciler};
/// # struct Rollout;
/// # impl Reconciler for Rollout {
/// #     async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> { Ok(Outcome::Done) }
/// # }
/// let controller = Controller::new("rollout", Rollout)
///     .for_kind::<Deployment>().predicate(predicate::generation_changed())
///     .owns::<ReplicaSet>()
///     .watches(|pod: &Pod| vec![Key::namespaced(pod.metadata.namespace.clone().unwrap_or_default(), "web")])
///     .concurrency(2);
/// ```
///
/// Mistakes (two own kinds, `owns` before `for_kind`, a predicate of another kind) are an error of
/// [`crate::Manager::run`].
pub struct Controller {
    pub(crate) name: String,
    pub(crate) reconciler: Arc<dyn DynReconciler>,
    pub(crate) kinds: Vec<Box<dyn KindSource>>,
    pub(crate) streams: Vec<BoxStream<'static, Key>>,
    pub(crate) concurrency: usize,
    pub(crate) timeout: Option<Duration>,
    pub(crate) client: Option<Client>,
    pub(crate) mistakes: Vec<String>,
    pub(crate) events: Form,
    pub(crate) event_source: Option<String>,
    pub(crate) on_every_replica: bool,
    owner_key: Option<OwnerKey>,
    /// Group and kind of the own kind.
    pub(crate) own: Option<(String, String)>,
    /// The part of the own kind that a controller of others needs a right to.
    finalizers: Option<Subject>,
    owns_kinds: bool,
    writes: Rights,
    last: Last,
}

/// Finds the key of the own kind's object that controls an object with this metadata.
type OwnerKey = fn(&kube::api::ObjectMeta) -> Option<Key>;

/// What a predicate would restrict.
enum Last {
    None,
    Kind,
    Stream,
}

impl Controller {
    /// A controller named `name` (for logs, counts and events; unique in a manager) that looks at nothing yet.
    pub fn new(name: impl Into<String>, reconciler: impl Reconciler) -> Self {
        Self {
            name: name.into(),
            reconciler: Arc::new(reconciler),
            kinds: Vec::new(),
            streams: Vec::new(),
            concurrency: 1,
            timeout: None,
            client: None,
            mistakes: Vec::new(),
            events: Form::Series,
            event_source: None,
            on_every_replica: false,
            owner_key: None,
            own: None,
            finalizers: None,
            owns_kinds: false,
            writes: Rights::default(),
            last: Last::None,
        }
    }

    /// Writes, and reads past the cache, by this client instead of the manager's: under an identity of its own. The caches
    /// stay the manager's.
    #[must_use]
    pub fn acting_as(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Records its events in the older form: of the core API instead of `events.k8s.io`, counted, combined and limited as
    /// client-go's `tools/record` does it. kubectl shows both.
    #[must_use]
    pub fn core_events(mut self) -> Self {
        self.events = Form::Core;
        self
    }

    /// Under which name its events are recorded; by default the controller's own.
    #[must_use]
    pub fn event_source(mut self, name: impl Into<String>) -> Self {
        self.event_source = Some(name.into());
        self
    }

    /// The own kind: every creation, change and deletion of an object leads to its key.
    #[must_use]
    pub fn for_kind<K: Object>(mut self) -> Self {
        if self.owner_key.is_some() {
            self.mistakes.push(format!("for_kind::<{}>: a controller has one own kind", type_name::<K>()));
        }
        self.owner_key = Some(owner::controller_key::<K>);
        self.own = Some((K::group(&()).into_owned(), K::kind(&()).into_owned()));
        self.finalizers = Some(Subject::of::<K>(Some("finalizers")));
        self.kind(Kind::mapped(|object: &K| vec![Key::of(object)]))
    }

    /// A kind whose objects the own kind controls: an event leads to the key of the controlling owner (the owner
    /// reference with `controller: true` to the own kind). Comes after `for_kind`.
    #[must_use]
    pub fn owns<K: Object>(mut self) -> Self {
        let Some(owner_key) = self.owner_key else {
            self.mistakes.push(format!("owns::<{}> comes before for_kind", type_name::<K>()));
            return self;
        };
        self.owns_kinds = true;
        self.kind(Kind::mapped(move |object: &K| owner_key(object.meta()).into_iter().collect()))
    }

    /// A kind whose events lead to the keys that `mapping` finds. On a change it is asked about the state before and
    /// after, on a deletion about the last one. It must not block.
    #[must_use]
    pub fn watches<K: Object>(self, mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static) -> Self {
        self.kind(Kind::mapped(mapping))
    }

    /// [As `watches`](Controller::watches), in another cluster. A [`crate::Context`] does not read it: its cache is the
    /// [`Member::cache`].
    #[must_use]
    pub fn watches_in<K: Object>(
        self,
        cluster: &Member,
        mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.kind(Kind::mapped(mapping).elsewhere(cluster.cache().clone()))
    }

    /// A kind that is read from the cache and whose events lead to nothing.
    #[must_use]
    pub fn reads<K: Object>(self) -> Self {
        self.kind(Kind::<K>::read())
    }

    /// Declares what it does with objects of a kind, for its [rights](Controller::rights).
    #[must_use]
    pub fn writes<K: Object>(mut self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        self.writes.add::<K>(verbs);
        self
    }

    /// Declares what it does with a part of objects of a kind, such as `status`, for its [rights](Controller::rights).
    #[must_use]
    pub fn writes_subresource<K: Object>(
        mut self,
        subresource: &str,
        verbs: impl IntoIterator<Item = Verb>,
    ) -> Self {
        self.writes.add_subresource::<K>(subresource, verbs);
        self
    }

    /// The least rights that it works with: to list and watch the kinds that it looks at (and to get those that it writes:
    /// whether a write's result is still there is asked, where the watch cannot tell), what it declared to
    /// [write](Controller::writes), and to record events.
    #[must_use]
    pub fn rights(&self) -> Rights {
        let mut rights = self.writes.clone();
        for subject in self.kinds.iter().filter_map(|kind| kind.subject()) {
            let written = self.writes.concern(&subject, &[Verb::Create, Verb::Patch, Verb::Update]);
            let verbs: &[Verb] =
                if written { &[Verb::Get, Verb::List, Verb::Watch] } else { &[Verb::List, Verb::Watch] };
            rights.put(subject, verbs.iter().copied());
        }
        if let (true, Some(finalizers)) = (self.owns_kinds, self.finalizers.clone()) {
            // An owner reference that blocks the owner's deletion needs this where the admission plugin
            // OwnerReferencesPermissionEnforcement is on.
            rights.put(finalizers, [Verb::Update]);
        }
        let verbs = [Verb::Create, Verb::Patch];
        match self.events {
            Form::Series => rights.add::<events::v1::Event>(verbs),
            Form::Core => rights.add::<core::v1::Event>(verbs),
        };
        rights
    }

    /// Lets only some events of the last added kind through; all of its predicates have to agree.
    #[must_use]
    pub fn predicate(mut self, predicate: Predicate) -> Self {
        match (&self.last, self.kinds.last_mut()) {
            (Last::Kind, Some(kind)) => {
                if let Err(other) = kind.restrict(predicate) {
                    self.mistakes.push(format!("a predicate on {other} follows a source of another kind"));
                }
            }
            (Last::Stream, _) => {
                self.mistakes.push("a predicate follows a stream of keys; filter the stream".into());
            }
            _ => self.mistakes.push("a predicate comes before any source".into()),
        }
        self
    }

    /// Watches, and keeps in the cache, only those objects of the last added kind that a field selector names (such as
    /// `metadata.name=settings`): others are "not there", and must not be written through a [`crate::Context`].
    /// Controllers of one manager share a cache, so they must agree on it.
    #[must_use]
    pub fn selecting(mut self, fields: &str) -> Self {
        match (&self.last, self.kinds.last_mut()) {
            (Last::Kind, Some(kind)) => kind.select(fields),
            _ => self.mistakes.push("a field selector comes before any kind".into()),
        }
        self
    }

    /// Any other reason for a reconcile. When the stream ends the controller goes on.
    #[must_use]
    pub fn source(mut self, keys: impl Stream<Item = Key> + Send + 'static) -> Self {
        self.streams.push(keys.boxed());
        self.last = Last::Stream;
        self
    }

    /// How many keys are worked on at the same time; 1 unless said otherwise. Never two workers on one key.
    #[must_use]
    pub fn concurrency(mut self, workers: usize) -> Self {
        if workers == 0 {
            self.mistakes.push("a concurrency of 0 would do nothing".into());
        }
        self.concurrency = workers;
        self
    }

    /// Drops a reconcile where it waits when it takes longer than this; it counts as failed and is tried again with the
    /// key's back-off. Unless said otherwise there is no limit.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        if limit.is_zero() {
            self.mistakes.push("a timeout of 0 lets no reconcile end".into());
        }
        self.timeout = Some(limit);
        self
    }

    /// Works on every replica, and on every key, in a manager that [elects](crate::Manager::elect) a leader or
    /// [shares](crate::Manager::share) its keys; without, it works where it is its turn, and its writes are fenced.
    #[must_use]
    pub fn on_every_replica(mut self) -> Self {
        self.on_every_replica = true;
        self
    }

    fn kind<K: Object>(mut self, kind: Kind<K>) -> Self {
        self.kinds.push(Box::new(kind));
        self.last = Last::Kind;
        self
    }
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("name", &self.name).finish_non_exhaustive()
    }
}
