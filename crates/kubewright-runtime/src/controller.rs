//! A controller: which events lead to which keys, and what is done about a key.

use std::{any::type_name, collections::BTreeSet, sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream::BoxStream};
use k8s_openapi::api::{core, events};
use kube::{Client, api::PartialObjectMeta, core::Selector};

use crate::{
    Index, Key, Member, Object, Predicate, Reconciler,
    cache::{Asked, Project},
    events::Form,
    owner,
    pause::{self, PAUSED, Pause},
    rbac::{Rights, Subject, Verb},
    reconciler::DynReconciler,
    source::{Kind, KindSource},
    workqueue::RateLimit,
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
    pub(crate) rate_limit: RateLimit,
    pub(crate) resync: Option<Duration>,
    /// Whether what a reconcile writes wakes its own key.
    pub(crate) hears_own: bool,
    pause_annotation: Option<Arc<str>>,
    own: Option<OwnKind>,
    owns_kinds: bool,
    writes: Rights,
    last: Last,
}

/// What has to be known of the own kind when its type is forgotten.
struct OwnKind {
    group: String,
    kind: String,
    /// The part of it that a controller of others needs a right to.
    finalizers: Subject,
    /// Finds the key of the object that controls an object with this metadata.
    owner_key: fn(&kube::api::ObjectMeta) -> Option<Key>,
    is_paused: pause::Look,
}

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
            rate_limit: RateLimit::default(),
            resync: None,
            hears_own: false,
            pause_annotation: Some(PAUSED.into()),
            own: None,
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
        if self.own.is_some() {
            self.mistakes.push(format!("for_kind::<{}>: a controller has one own kind", type_name::<K>()));
        }
        self.own = Some(OwnKind {
            group: K::group(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            finalizers: Subject::of::<K>(Some("finalizers")),
            owner_key: owner::controller_key::<K>,
            is_paused: pause::look::<K>,
        });
        self.kind(Kind::own(|object: &K| vec![Key::of(object)]))
    }

    /// A kind whose objects the own kind controls: an event leads to the key of the controlling owner (the owner
    /// reference with `controller: true` to the own kind). Comes after `for_kind`.
    #[must_use]
    pub fn owns<K: Object>(mut self) -> Self {
        let Some(owner_key) = self.own.as_ref().map(|own| own.owner_key) else {
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

    /// As [`Controller::watches`], of the objects' metadata alone: the API server sends, and the cache keeps, no more than
    /// that, as [`PartialObjectMeta`]. `ctx.get::<PartialObjectMeta<K>>(key)` reads it; it can be patched and deleted, not
    /// updated. Beside `watches::<K>` of another controller it is a watch of its own.
    #[must_use]
    pub fn watches_metadata<K: Object>(
        self,
        mapping: impl Fn(&PartialObjectMeta<K>) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.watches(mapping)
    }

    /// As [`Controller::owns`], of the objects' metadata alone ([`Controller::watches_metadata`]).
    #[must_use]
    pub fn owns_metadata<K: Object>(self) -> Self {
        self.owns::<PartialObjectMeta<K>>()
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
            rights.imply(subject, verbs.iter().copied());
        }
        if let (true, Some(finalizers)) =
            (self.owns_kinds, self.own.as_ref().map(|own| own.finalizers.clone()))
        {
            // An owner reference that blocks the owner's deletion needs this where the admission plugin
            // OwnerReferencesPermissionEnforcement is on.
            rights.imply(finalizers, [Verb::Update]);
        }
        let recorded = match self.events {
            Form::Series => Subject::of::<events::v1::Event>(None),
            Form::Core => Subject::of::<core::v1::Event>(None),
        };
        rights.imply(recorded, [Verb::Create, Verb::Patch]);
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

    /// Does not wait for the last added kind when the API server does not serve it, because its CustomResourceDefinition
    /// is not there (yet, or any more): as long as that is so, there are no objects of it. Without this the controller
    /// waits for every kind before it starts to work. The watch begins when the kind is served, within seconds.
    #[must_use]
    pub fn optional(mut self) -> Self {
        match (&self.last, self.kinds.last_mut()) {
            (Last::Kind, Some(kind)) => kind.make_optional(),
            _ => self
                .mistakes
                .push("optional() comes before any kind; call it after the kind that may be missing".into()),
        }
        self
    }

    /// Lets what a reconcile writes to objects of the last added kind wake its own key again; otherwise it does not.
    ///
    /// A reconcile has seen what it wrote: the answer is what the write returned, and it is in the cache. So the event of a
    /// write, of the own status or of an owned object, does not wake the key whose reconcile made it. It does when there
    /// is anything in it that the reconcile did not see: the server made something else of it than was asked for, somebody
    /// else wrote to the object in between, or the write was one to delete. Other keys, other controllers and other replicas
    /// hear of it in any case. What a write did whose answer was lost counts as somebody else's.
    ///
    /// For reconcilers that take one step each time and rely on being called again for the next one: they write, return
    /// [`Outcome::Done`](crate::Outcome::Done), and expect the event. Better is to go on in the same reconcile.
    #[must_use]
    pub fn own_events(mut self) -> Self {
        match (&self.last, self.kinds.last_mut()) {
            (Last::Kind, Some(kind)) => kind.hear_own(),
            _ => self.mistakes.push(
                "own_events() comes before any kind; call it after the kind whose events it is about".into(),
            ),
        }
        self
    }

    /// As [`Controller::own_events`], for all of its kinds, those that are [watched](crate::Context::watch) at run time too.
    #[must_use]
    pub fn all_own_events(mut self) -> Self {
        self.hears_own = true;
        self
    }

    /// Reconciles everything once more each time this long has passed, give or take a tenth, as if the objects of all its
    /// kinds had just been found: with low priority. Controllers that look at nothing but Kubernetes do not need it; it is
    /// for those whose other half nobody watches. (controller-runtime's `SyncPeriod`, 10 hours there, never here.)
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        if period.is_zero() {
            self.mistakes
                .push("a resync period of 0 never rests: give it some minutes, or leave it out".into());
        }
        self.resync = Some(period);
        self
    }

    /// Watches, and keeps in the cache, only those objects of the last added kind that a field selector names (such as
    /// `metadata.name=settings`): others are "not there", and must not be written through a [`crate::Context`].
    /// Controllers of one manager share a cache, so they must agree on it.
    #[must_use]
    pub fn selecting(self, fields: &str) -> Self {
        self.asked("a field selector", |asked| fields.clone_into(&mut asked.fields))
    }

    /// As [`Controller::selecting`], by labels: `Expression::Equal("app".into(), "web".into())`, or any
    /// [`Selector`]. A write that takes an object out of the selection is not seen in the cache before the watch tells of it.
    #[must_use]
    pub fn labelled(self, labels: impl Into<Selector>) -> Self {
        self.asked("a label selector", |asked| asked.labels = labels.into())
    }

    /// Watches the last added kind in these namespaces, with a watch for each, whatever the manager's are
    /// ([`crate::Manager::watch_namespaces`]). To write in others is possible, and not seen in the cache.
    #[must_use]
    pub fn in_namespaces<N: Into<String>>(self, namespaces: impl IntoIterator<Item = N>) -> Self {
        let namespaces: BTreeSet<String> = namespaces.into_iter().map(Into::into).collect();
        let is_empty = namespaces.is_empty();
        let mut this = self.asked("a list of namespaces", |asked| asked.namespaces = Some(namespaces));
        if is_empty {
            this.mistakes.push("in_namespaces() names none: name some, or use in_all_namespaces()".into());
        }
        this
    }

    /// Watches the last added kind in all namespaces, whatever the manager's are: cluster-wide, with the memory and the
    /// ClusterRole that this takes.
    #[must_use]
    pub fn in_all_namespaces(self) -> Self {
        self.asked("a list of namespaces", |asked| asked.namespaces = Some(BTreeSet::new()))
    }

    /// Keeps only a part of each object of the last added kind in the cache: `project` takes away what nobody reads.
    ///
    /// **What was taken away looks as if it were not there.** To write such an object back would erase it on the server, so
    /// that [`crate::Context::update`], `update_status` and `ensure` refuse the kind: patch or apply what changes instead. It holds
    /// for every controller of the manager; declare it on the first one that looks at the kind. Name, namespace, uid, resource
    /// version and owner references must stay.
    #[must_use]
    pub fn projected<K: Object>(mut self, project: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        let project: Project<K> = Arc::new(project);
        match (&self.last, self.kinds.last_mut()) {
            (Last::Kind, Some(kind)) => {
                if !kind.project(Box::new(project)) {
                    let mistake =
                        format!("a projection of {} follows a source of another kind", type_name::<K>());
                    self.mistakes.push(mistake);
                }
            }
            _ => self.mistakes.push("a projection comes before any kind".into()),
        }
        self
    }

    /// Keeps an index of the last added kind up to date.
    #[must_use]
    pub fn indexed<K: Object>(mut self, index: &Index<K>) -> Self {
        match (&self.last, self.kinds.last_mut()) {
            (Last::Kind, Some(kind)) => {
                if !kind.index(index) {
                    let mistake =
                        format!("an index of {} follows a source of another kind", type_name::<K>());
                    self.mistakes.push(mistake);
                }
            }
            _ => self.mistakes.push("an index comes before any kind".into()),
        }
        self
    }

    fn asked(mut self, what: &str, ask: impl FnOnce(&mut Asked)) -> Self {
        match (&self.last, self.kinds.last_mut()) {
            (Last::Kind, Some(kind)) => ask(kind.asked()),
            _ => self.mistakes.push(format!("{what} comes before any kind")),
        }
        self
    }

    /// Any other reason for a reconcile; [`sources`](crate::sources) has some. When the stream ends the controller goes on.
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

    /// How fast failed keys come back; what is usual unless said otherwise ([`RateLimit`]).
    #[must_use]
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.mistakes.extend(limit.mistake().map(str::to_owned));
        self.rate_limit = limit;
        self
    }

    /// Which annotation pauses an object of the own kind, instead of [`PAUSED`]. While its value is `"true"` no event leads
    /// to a reconcile of the object, its deletion neither: finalizers hold it. As soon as it is taken away the object is
    /// reconciled, whatever the predicates say. A reconcile that goes on is not broken off.
    #[must_use]
    pub fn paused_by(mut self, annotation: impl Into<String>) -> Self {
        let annotation: String = annotation.into();
        if annotation.is_empty() {
            self.mistakes.push("an empty annotation pauses nothing: use never_paused()".into());
        }
        self.pause_annotation = Some(annotation.into());
        self
    }

    /// Reconciles objects of the own kind whatever their annotations are.
    #[must_use]
    pub fn never_paused(mut self) -> Self {
        self.pause_annotation = None;
        self
    }

    /// Group and kind of the own kind.
    pub(crate) fn own_kind(&self) -> Option<(String, String)> {
        self.own.as_ref().map(|own| (own.group.clone(), own.kind.clone()))
    }

    pub(crate) fn pause(&self) -> Option<Pause> {
        let (annotation, own) = (self.pause_annotation.clone()?, self.own.as_ref()?);
        Some(Pause { annotation, look: own.is_paused })
    }

    /// Drops a reconcile where it waits when it takes longer than this; it counts as failed and is tried again with the
    /// key's back-off. Unless said otherwise there is no limit.
    ///
    /// To be dropped means: the reconcile ends at the `.await` where it is, its locks and guards are released, and nothing
    /// behind that point happens. A request that was on its way may have been carried out or not; the cache learns of it by
    /// its watch. The next try looks at what is there, as after a crash, so a reconcile must be fit to begin anew at any
    /// `.await`. One that computes without waiting, or blocks the thread, cannot be dropped: keep both out of it.
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
