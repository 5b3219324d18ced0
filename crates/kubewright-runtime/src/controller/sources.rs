//! Which events lead to a controller's keys.

use std::any::type_name;

use futures::{Stream, StreamExt};
use kube::api::PartialObjectMeta;

use super::{Controller, Last, OwnKind};
use crate::{
    Key, Member, Object, Predicate,
    apply::{AppliedKind, Ownership, marked_key},
    error_policy::OnKind,
    orphan_guard::OrphanGuard,
    owner, pause,
    rbac::{ResourceAttributes, Verb},
    source::WatchedKind,
};

impl Controller {
    /// The own kind: every creation, change and deletion of an object leads to its key.
    #[must_use]
    pub fn for_kind<K: Object>(mut self) -> Self {
        if self.own.is_some() {
            self.mistakes.push(format!("for_kind::<{}>: a controller has one own kind", type_name::<K>()));
        }
        self.own = Some(OwnKind {
            group: K::group(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            attributes: ResourceAttributes::of::<K>(None),
            finalizers: ResourceAttributes::of::<K>(Some("finalizers")),
            status: ResourceAttributes::of::<K>(Some("status")),
            failures: OnKind::of::<K>(),
            owner_key: owner::controller_key::<K>,
            is_paused: pause::look::<K>,
            orphan_guard: OrphanGuard::of::<K>(),
        });
        self.kind(WatchedKind::<K>::own())
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
        self.kind(WatchedKind::mapped(move |object: &K| owner_key(object.meta()).into_iter().collect()))
    }

    /// A kind of which it [applies](crate::Context::apply_all) all that its own objects have: [`Controller::owns`], with the rights to
    /// create, change and delete its objects. An object that the own kind controls, and that the controller does not want any
    /// more, is deleted by [`Context::apply_all`](crate::Context::apply_all).
    #[must_use]
    pub fn applies<K: Object>(self) -> Self {
        self.owns::<K>().applied::<K>(Ownership::Reference)
    }

    /// As [`Controller::applies`], for objects that cannot have an owner reference to the own kind: those in another namespace than their
    /// owner, and cluster-scoped ones of a namespaced owner. `label` marks whose an object is: as a label its value is the owner's uid, as an
    /// annotation the owner's `namespace/name`. [`Context::apply_all`](crate::Context::apply_all) puts both on what it applies, and deletes what has the
    /// owner's label and is not wanted any more; an object with the label of another owner is refused.
    ///
    /// The garbage collector does not know of this: the owner needs a [finalizer](crate::finalizer), whose clean-up applies an empty
    /// [`Desired`](crate::Desired). All cached objects of the kind are looked through each time.
    ///
    /// ```
    /// # use k8s_openapi::api::{core::v1::ConfigMap, rbac::v1::ClusterRole};
    /// # use kubewright_runtime::{Context, Controller, Desired, Error, Key, Outcome, Reconciler};
    /// struct Shops;
    ///
    /// impl Reconciler for Shops {
    ///     async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
    ///         let Some(shop) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
    ///         let mut role = ClusterRole::default();
    ///         role.metadata.name = Some(format!("{}-{}", key.namespace.as_deref().unwrap_or_default(), key.name));
    ///         ctx.apply_all(&*shop, Desired::new().with(role)).await?;
    ///         Ok(Outcome::Done)
    ///     }
    /// }
    ///
    /// let controller = Controller::new("shops", Shops)
    ///     .for_kind::<ConfigMap>()
    ///     .applies_labelled::<ClusterRole>("shops.example.com/owner");
    /// ```
    #[must_use]
    pub fn applies_labelled<K: Object>(mut self, label: &'static str) -> Self {
        if self.own.is_none() {
            self.mistakes.push(format!("applies_labelled::<{}> comes before for_kind", type_name::<K>()));
            return self;
        }
        self.watches(move |object: &K| marked_key(object.meta(), label).into_iter().collect())
            .applied::<K>(Ownership::Label(label))
    }

    fn applied<K: Object>(self, ownership: Ownership) -> Self {
        let mut this = self.writes::<K>([Verb::Create, Verb::Patch]);
        // Not each owner comes to want less.
        this.writes.imply(ResourceAttributes::of::<K>(None), [Verb::Delete]);
        this.applied.push(AppliedKind::of::<K>(ownership));
        this
    }

    /// A kind whose events lead to the keys that `mapping` finds. On a change it is asked about the state before and
    /// after, on a deletion about the last one. It must not block.
    #[must_use]
    pub fn watches<K: Object>(self, mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static) -> Self {
        self.kind(WatchedKind::mapped(mapping))
    }

    /// [As `watches`](Controller::watches), in another cluster. A [`crate::Context`] does not read it: its cache is the
    /// [`Member::cache`].
    #[must_use]
    pub fn watches_in<K: Object>(
        self,
        cluster: &Member,
        mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.kind(WatchedKind::mapped(mapping).elsewhere(cluster.cache().clone()))
    }

    /// As [`Controller::watches`], in each further cluster of the manager, whenever it comes: for objects that belong to some of the own kind in
    /// the manager's cluster. The mapping gives keys of that. Reconciles read and write there by
    /// [`Context::in_cluster`](crate::Context::in_cluster). When a cluster comes or goes, all objects of the own kind are reconciled.
    #[must_use]
    pub fn watches_in_each<K: Object>(
        self,
        mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.kind(WatchedKind::mapped(mapping).in_members())
    }

    /// Works in each further cluster of the manager, whenever it comes, instead of the manager's own: all of its kinds are looked at
    /// there, its keys have the [cluster](Key::cluster) in them, and the context of a reconcile is of that cluster. One queue, its concurrency and its
    /// back-off are for all clusters; a cluster that is away holds up its own keys alone. An [`Index`](crate::Index) and a gauge are of one cluster
    /// and cannot be had here.
    ///
    /// Events are recorded in the object's cluster. Its [rights](Controller::rights_in_clusters) are of the identity that each cluster's client has.
    #[must_use]
    pub fn in_each_cluster(mut self) -> Self {
        self.in_each_cluster = true;
        self
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
        self.kind(WatchedKind::<K>::read())
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
            (Last::Kind, Some(kind)) => kind.include_own_events(),
            _ => self.mistakes.push(
                "own_events() comes before any kind; call it after the kind whose events it is about".into(),
            ),
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

    fn kind<K: Object>(mut self, kind: WatchedKind<K>) -> Self {
        self.kinds.push(Box::new(kind));
        self.last = Last::Kind;
        self
    }
}
