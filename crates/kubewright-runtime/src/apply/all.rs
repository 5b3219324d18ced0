//! All that an owner is to have: it is applied, and what it has besides is deleted.

use std::{any::TypeId, collections::BTreeSet, fmt};

use futures::{FutureExt, future::BoxFuture};
use kube::api::{DeleteParams, Preconditions};

use crate::{
    Context, Deletion, Error, Key, Object, Written,
    owner::{Owner, controller_of},
};

/// All that an owner is to have, in the order in which it is applied: for [`Context::apply_all`].
#[derive(Default)]
#[must_use = "nothing is applied before `Context::apply_all` gets it"]
pub struct Desired(Vec<Box<dyn Child>>);

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

    fn apply<'a>(
        &'a self,
        context: &'a Context,
        owner: &'a (dyn Owner + Sync),
    ) -> BoxFuture<'a, Result<Option<What>, Error>>;
}

struct Typed<K>(K);

type Delete = for<'a> fn(&'a Context, &'a Found) -> BoxFuture<'a, Result<Option<ChildChange>, Error>>;

/// A kind of which a controller [applies](crate::Controller::applies) all that its owners have.
#[derive(Clone, Copy)]
pub(crate) struct AppliedKind {
    id: TypeId,
    /// Finds the objects that the owner of this uid controls and that are not being deleted.
    controlled_by: fn(&Context, &str) -> Vec<Found>,
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
    pub fn with<K: Object>(mut self, object: K) -> Self {
        self.0.push(Box::new(Typed(object)));
        self
    }

    /// These objects as well: any number of them, or an `Option` of one.
    pub fn with_all<K: Object>(self, objects: impl IntoIterator<Item = K>) -> Self {
        objects.into_iter().fold(self, Self::with)
    }
}

impl fmt::Debug for Desired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|child| child.kind_and_key())).finish()
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
        (K::kind(&()).into_owned(), Key::of(&self.0))
    }

    fn apply<'a>(
        &'a self,
        context: &'a Context,
        owner: &'a (dyn Owner + Sync),
    ) -> BoxFuture<'a, Result<Option<What>, Error>> {
        let apply = async move {
            Ok(match context.apply(&self.0).owned_by(owner).await? {
                Written::Created(_) => Some(What::Created),
                Written::Updated { changed, .. } => Some(What::Updated(changed)),
                Written::Unchanged(_) => None,
            })
        };
        apply.boxed()
    }
}

impl AppliedKind {
    pub(crate) fn of<K: Object>() -> Self {
        Self { id: TypeId::of::<K>(), controlled_by: controlled_by::<K>, delete: delete::<K> }
    }
}

fn controlled_by<K: Object>(context: &Context, uid: &str) -> Vec<Found> {
    let objects = context.owned_by::<K>(uid);
    let theirs = objects.iter().filter(|object| {
        let meta = object.meta();
        meta.deletion_timestamp.is_none() && controller_of(meta).is_some_and(|owner| owner.uid == uid)
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
    /// [applied](Context::apply) as the owner's, in this order, and then what the owner controls of these kinds, and is not among
    /// them, is deleted. What is as it should be costs no request. Tells what it did.
    ///
    /// What the owner has is known from the cache: the objects with an owner reference to it that has `controller: true`. So one
    /// call has to name all, of all these kinds. What is in other kinds, or has another controller or none, is left alone; what is
    /// being deleted already is waited for by nobody.
    ///
    /// An object that cannot be applied does not hold up the others, but nothing is deleted then: what it was to replace may still be
    /// needed.
    ///
    /// ```
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Service}};
    /// # use kubewright_runtime::{Context, Desired, Error, EventType};
    /// # async fn example(
    /// #     ctx: &Context, site: &ConfigMap, servers: Deployment, service: Option<Service>,
    /// # ) -> Result<(), Error> {
    /// for change in ctx.apply_all(site, Desired::new().with(servers).with_all(service)).await? {
    ///     ctx.event(site, EventType::Normal, change.reason(), &change.to_string());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first of what [`Context::apply`] and [`Context::delete`] fail with; an object of a kind that the controller does not declare
    /// by [`Controller::applies`](crate::Controller::applies): nobody would take it away again.
    pub async fn apply_all(
        &self,
        owner: &(dyn Owner + Sync),
        desired: Desired,
    ) -> Result<Vec<ChildChange>, Error> {
        let (kinds, Desired(children)) = (self.applied_kinds(), desired);
        for child in &children {
            if !kinds.iter().any(|kind| kind.id == child.id()) {
                let (controller, (kind, key)) = (self.controller(), child.kind_and_key());
                return Err(Error::terminal(format!(
                    "the controller {controller} wants {kind} {key} but does not apply this kind: add .applies::<{kind}>()"
                )));
            }
        }
        let (mut changes, mut failed) = (Vec::new(), None);
        for child in &children {
            match child.apply(self, owner).await {
                Ok(Some(what)) => {
                    let (kind, key) = child.kind_and_key();
                    changes.push(ChildChange { kind, key, what });
                }
                Ok(None) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let uid = owner.controller_reference()?.uid;
        for kind in kinds {
            let wanted: BTreeSet<Key> = children
                .iter()
                .filter(|child| child.id() == kind.id)
                .map(|child| child.kind_and_key().1)
                .collect();
            for found in (kind.controlled_by)(self, &uid) {
                if !wanted.contains(&found.key) {
                    changes.extend((kind.delete)(self, &found).await?);
                }
            }
        }
        Ok(changes)
    }
}
