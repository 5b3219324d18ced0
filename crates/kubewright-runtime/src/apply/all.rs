//! All that an owner is to have: it is applied, and what it has besides is deleted.

use std::{any::TypeId, collections::BTreeSet, fmt, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use kube::api::{DeleteParams, Preconditions};

use super::{
    mark::{Mark, Ownership},
    ready,
};
use crate::{Context, Deletion, Error, Key, Object, Written, object::to_value, owner::Owner};

/// All that an owner is to have, in the order in which it is applied: for [`Context::apply_all`].
#[derive(Default)]
#[must_use = "nothing is applied before `Context::apply_all` gets it"]
pub struct Desired {
    children: Vec<(usize, Box<dyn Child>)>,
    /// The wave of what is added next.
    wave: usize,
}

/// What [`Context::apply_all`] did, and what it waits for. As an iterator it gives what it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppliedAll {
    /// What was done, in the order in which it was.
    pub changes: Vec<ChildChange>,
    /// What is not ready yet, so that the waves behind it are not applied. Empty when all of them are.
    pub waits_for: Vec<NotReady>,
}

/// An object that a later wave waits for. Displayed, it says so: `Deployment web: 1 of 3 available`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotReady {
    /// The kind of the object.
    pub kind: String,
    /// Which object.
    pub key: Key,
    /// Why it is not.
    pub why: String,
}

/// One thing that [`Context::apply_all`] did. Displayed, it says so: `Created Deployment web`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildChange {
    /// The kind of the object.
    pub kind: String,
    /// Which object.
    pub key: Key,
    /// What was done.
    pub what: What,
}

/// What was done to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It was not there and was created.
    Created,
    /// It differed and was changed: so, as [`Written::Updated`] tells.
    Updated(String),
    /// It was not wanted any more and was deleted.
    Deleted,
}

/// An object that is to be there; its kind's type is forgotten.
trait Child: Send + Sync {
    fn id(&self) -> TypeId;

    fn kind_and_key(&self) -> (String, Key);

    /// Applies it; tells what was done, and why it is not ready where that is waited for.
    fn apply<'a>(
        &'a self,
        context: &'a Context,
        owner: &'a (dyn Owner + Sync),
        ownership: Ownership,
        is_awaited: bool,
    ) -> BoxFuture<'a, Result<Outcome, Error>>;
}

/// What became of one object: what was done, and why it is not ready where that is waited for.
type Outcome = (Option<What>, Option<String>);

type IsReady<K> = Arc<dyn Fn(&K) -> bool + Send + Sync>;

struct Typed<K> {
    object: K,
    is_ready: Option<IsReady<K>>,
}

type Delete = for<'a> fn(&'a Context, &'a Found) -> BoxFuture<'a, Result<Option<ChildChange>, Error>>;

/// A kind of which a controller [applies](crate::Controller::applies) all that its owners have.
#[derive(Clone, Copy)]
pub(crate) struct AppliedKind {
    id: TypeId,
    ownership: Ownership,
    /// Finds the objects that the owner of this uid has in this way and that are not being deleted.
    had_by: fn(&Context, &str, Ownership) -> Vec<Found>,
    delete: Delete,
}

/// An object that an owner has.
struct Found {
    key: Key,
    uid: Option<String>,
}

impl Desired {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// This object as well.
    pub fn with<K: Object>(self, object: K) -> Self {
        self.push(object, None)
    }

    /// This object as well, which is ready when `is_ready` says so of it as it is now, whatever its conditions say: for
    /// [`Desired::then`].
    pub fn with_ready<K: Object>(
        self,
        object: K,
        is_ready: impl Fn(&K) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.push(object, Some(Arc::new(is_ready)))
    }

    /// These objects as well: any number of them, or an `Option` of one.
    pub fn with_all<K: Object>(self, objects: impl IntoIterator<Item = K>) -> Self {
        objects.into_iter().fold(self, Self::with)
    }

    /// Begins the next wave: what is added from here on is applied when all before it is ready. Until then it is left as it is, and nothing
    /// that is not wanted any more is deleted. A change of what is waited for leads to a reconcile, as of any object that is applied.
    ///
    /// An object is ready by the rules of [kstatus](https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus): its
    /// generation is observed; all replicas of a workload are updated and available; a Job is complete; a claim is bound; a Pod is
    /// ready; a CustomResourceDefinition is established; of other kinds, the conditions `Reconciling` and `Stalled` are not true, and
    /// `Ready` is, if it is there. So a custom resource that its own controller has not looked at yet is ready: [`Desired::with_ready`].
    pub fn then(mut self) -> Self {
        self.wave += 1;
        self
    }

    fn push<K: Object>(mut self, object: K, is_ready: Option<IsReady<K>>) -> Self {
        self.children.push((self.wave, Box::new(Typed { object, is_ready })));
        self
    }
}

impl AppliedAll {
    /// Whether all waves are applied.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.waits_for.is_empty()
    }
}

impl IntoIterator for AppliedAll {
    type Item = ChildChange;
    type IntoIter = std::vec::IntoIter<ChildChange>;

    fn into_iter(self) -> Self::IntoIter {
        self.changes.into_iter()
    }
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.kind, self.key.name, self.why)
    }
}

impl fmt::Debug for Desired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.children.iter().map(|(_, child)| child.kind_and_key())).finish()
    }
}

impl ChildChange {
    /// As the reason of an Event: `Created`, `Updated` or `Deleted`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self.what {
            What::Created => "Created",
            What::Updated(_) => "Updated",
            What::Deleted => "Deleted",
        }
    }
}

impl fmt::Display for ChildChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.reason(), self.kind, self.key.name)?;
        match &self.what {
            What::Updated(changed) if !changed.is_empty() => write!(f, ": {changed}"),
            _ => Ok(()),
        }
    }
}

impl<K: Object> Child for Typed<K> {
    fn id(&self) -> TypeId {
        TypeId::of::<K>()
    }

    fn kind_and_key(&self) -> (String, Key) {
        (K::kind(&()).into_owned(), Key::of(&self.object))
    }

    fn apply<'a>(
        &'a self,
        context: &'a Context,
        owner: &'a (dyn Owner + Sync),
        ownership: Ownership,
        is_awaited: bool,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        let apply = async move {
            let written = match ownership {
                Ownership::Reference => context.apply(&self.object).owned_by(owner).await?,
                Ownership::Label(label) => {
                    let mark = Mark::of(owner, label)?;
                    let mut object = self.object.clone();
                    mark.put_on(object.meta_mut());
                    context.apply(&object).marked(&mark).await?
                }
            };
            let why = if is_awaited { self.why_not_ready(written.object())? } else { None };
            let what = match written {
                Written::Created(_) => Some(What::Created),
                Written::Updated { changed, .. } => Some(What::Updated(changed)),
                Written::Unchanged(_) => None,
            };
            Ok((what, why))
        };
        apply.boxed()
    }
}

impl<K: Object> Typed<K> {
    fn why_not_ready(&self, object: &K) -> Result<Option<String>, Error> {
        Ok(match &self.is_ready {
            Some(is_ready) => (!is_ready(object)).then(|| "it is not ready yet".to_owned()),
            None => ready::why_not(&K::group(&()), &K::kind(&()), &to_value(object)?),
        })
    }
}

impl AppliedKind {
    pub(crate) fn of<K: Object>(ownership: Ownership) -> Self {
        Self { id: TypeId::of::<K>(), ownership, had_by: had_by::<K>, delete: delete::<K> }
    }
}

fn had_by<K: Object>(context: &Context, uid: &str, ownership: Ownership) -> Vec<Found> {
    let objects = match ownership {
        Ownership::Reference => context.owned_by::<K>(uid),
        Ownership::Label(_) => context.list::<K>(None),
    };
    let theirs = objects.iter().filter(|object| {
        let meta = object.meta();
        meta.deletion_timestamp.is_none() && ownership.owner_of(meta) == Some(uid)
    });
    theirs.map(|object| Found { key: Key::of(&**object), uid: object.meta().uid.clone() }).collect()
}

fn delete<'a, K: Object>(
    context: &'a Context,
    found: &'a Found,
) -> BoxFuture<'a, Result<Option<ChildChange>, Error>> {
    let delete = async move {
        // Another object that has the name by now is somebody else's; and a Job's pods are to go with it, too.
        let this = Preconditions { uid: found.uid.clone(), ..Preconditions::default() };
        let deletion =
            context.delete::<K>(&found.key, DeleteParams::background().preconditions(this)).await?;
        tracing::debug!(controller = %context.controller(), kind = %K::kind(&()), key = %found.key, "deleted");
        let (kind, key) = (K::kind(&()).into_owned(), found.key.clone());
        Ok((!matches!(deletion, Deletion::Absent)).then_some(ChildChange { kind, key, what: What::Deleted }))
    };
    delete.boxed()
}

impl Context {
    /// Makes `owner` have these objects, and no others of the kinds that the controller [applies](crate::Controller::applies): each is
    /// [applied](Context::apply) as the owner's, in this order, and then what the owner has of these kinds, and is not among
    /// them, is deleted, those of the kinds that were declared last first. What is as it should be costs no request. Tells what it did.
    ///
    /// What the owner has is known from the cache: the objects with an owner reference to it that has `controller: true`, or with its
    /// [label](crate::Controller::applies_labelled). So one call has to name all, of all these kinds. What is in other kinds, or has another
    /// controller or none, is left alone; what is being deleted already is waited for by nobody.
    ///
    /// [`Desired::then`] makes waves: the objects behind it wait until those before it are ready, and so does all that is to be
    /// deleted. [`AppliedAll::waits_for`] tells what is not ready.
    ///
    /// An object that cannot be applied does not hold up the others of its wave, but nothing is deleted then: what it was to replace may still be
    /// needed.
    ///
    /// ```
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Service}};
    /// # use kubewright_runtime::{Context, Desired, Error, EventType};
    /// # async fn example(
    /// #     ctx: &Context, site: &ConfigMap, servers: Deployment, service: Option<Service>,
    /// # ) -> Result<(), Error> {
    /// let applied = ctx.apply_all(site, Desired::new().with(servers).then().with_all(service)).await?;
    /// if let Some(not_ready) = applied.waits_for.first() {
    ///     println!("the Service comes later: {not_ready}"); // Deployment web: 1 of 3 available
    /// }
    /// for change in applied {
    ///     ctx.event(site, EventType::Normal, change.reason(), &change.to_string());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first of what [`Context::apply`] and [`Context::delete`] fail with; an object of a kind that the controller does not declare
    /// by [`Controller::applies`](crate::Controller::applies): nobody would take it away again.
    pub async fn apply_all(&self, owner: &(dyn Owner + Sync), desired: Desired) -> Result<AppliedAll, Error> {
        let (kinds, Desired { children, wave: last }) = (self.applied_kinds(), desired);
        let ownerships: Vec<Ownership> = children
            .iter()
            .map(|(_, child)| {
                let kind = kinds.iter().find(|kind| kind.id == child.id());
                kind.map(|kind| kind.ownership).ok_or_else(|| {
                    let (controller, (kind, key)) = (self.controller(), child.kind_and_key());
                    Error::terminal(format!(
                        "the controller {controller} wants {kind} {key} but does not apply this kind: add .applies::<{kind}>()"
                    ))
                })
            })
            .collect::<Result<_, _>>()?;
        let (mut applied, mut failed, mut waits_since) = (AppliedAll::default(), None, None);
        for ((wave, child), ownership) in children.iter().zip(ownerships) {
            if waits_since.is_some_and(|since| since < *wave) {
                break;
            }
            match child.apply(self, owner, ownership, *wave < last).await {
                Ok((what, why)) => {
                    let (kind, key) = child.kind_and_key();
                    if let Some(what) = what {
                        applied.changes.push(ChildChange { kind: kind.clone(), key: key.clone(), what });
                    }
                    if let Some(why) = why {
                        waits_since = Some(*wave);
                        applied.waits_for.push(NotReady { kind, key, why });
                    }
                }
                Err(error) => {
                    waits_since = Some(*wave);
                    failed = failed.or(Some(error));
                }
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if !applied.is_complete() {
            return Ok(applied);
        }
        let uid = owner.controller_reference()?.uid;
        for kind in kinds.iter().rev() {
            let wanted: BTreeSet<Key> = children
                .iter()
                .filter(|(_, child)| child.id() == kind.id)
                .map(|(_, child)| child.kind_and_key().1)
                .collect();
            for found in (kind.had_by)(self, &uid, kind.ownership) {
                if !wanted.contains(&found.key) {
                    applied.changes.extend((kind.delete)(self, &found).await?);
                }
            }
        }
        Ok(applied)
    }
}
