//! Server-side apply: a controller says which fields it wants an object to have, and the API server keeps who owns which.
//!
//! An apply that would change nothing sends no request. How that is known is told in `docs/design/apply.md`.

mod all;
mod body;
mod known;
mod make_room;
mod mark;
mod ready;
mod take_over;

use std::future::IntoFuture;

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ObjectMeta, Patch};
use serde_json::Value;

pub use self::all::{AppliedAll, ChildChange, Desired, NotReady, What};
pub(crate) use self::{
    all::AppliedKind,
    mark::{Ownership, marked_key},
};
use self::{
    known::{Outlook, Request},
    mark::Mark,
};
use crate::{
    Cached, Context, Error, Key, Written,
    cache::{Applier, Intent},
    context::Answer,
    endpoint::{Action, WriteOptions, write_options},
    kind::KindOf,
    object::to_value,
    owner::{self, Owner},
    written,
};

/// An apply that is about to happen: it does when it is awaited. Made by [`Context::apply`].
#[must_use = "nothing is applied until it is awaited"]
pub struct Apply<'a, K: Cached> {
    context: &'a Context,
    kind: KindOf<K>,
    desired: &'a K,
    owner: Option<&'a (dyn Owner + Sync)>,
    /// The mark of its owner that is on `desired`.
    mark: Option<&'a Mark>,
    options: WriteOptions,
    subresource: Option<&'static str>,
}

impl<'a, K: Cached> Apply<'a, K> {
    pub(crate) fn new(context: &'a Context, kind: KindOf<K>, desired: &'a K) -> Self {
        let options = WriteOptions { force: true, ..WriteOptions::default() };
        Self { context, kind, desired, owner: None, mark: None, options, subresource: None }
    }

    /// Makes `owner` the controller of the object.
    pub fn owned_by(mut self, owner: &'a (dyn Owner + Sync)) -> Self {
        self.owner = Some(owner);
        self
    }

    /// As [`Apply::owned_by`], if there is an owner.
    pub(crate) fn owned_by_any(mut self, owner: Option<&'a (dyn Owner + Sync)>) -> Self {
        self.owner = owner;
        self
    }

    /// Says that `desired` has the mark of its owner on it.
    fn marked(mut self, mark: &'a Mark) -> Self {
        self.mark = Some(mark);
        self
    }

    /// Takes no field from others that own it and gave it another value: the server refuses the apply
    /// ([`Error::is_conflict`]) and says whose which field is. Without this they are taken over, as what a controller makes is to
    /// be as the controller says.
    pub fn unforced(mut self) -> Self {
        self.options.force = false;
        self
    }

    write_options!(
        "Applies as another field manager than the one that is called like the controller: for fields whose owner is another part of the program. Whether it would change something is not known then: each is sent."
    );

    /// Applies the status alone: other fields of the object but its name are not sent.
    pub fn status(mut self) -> Self {
        self.subresource = Some("status");
        self
    }

    fn owners(&self) -> Result<Option<Vec<OwnerReference>>, Error> {
        let owners = self.desired.meta().owner_references.clone();
        let Some(owner) = self.owner else { return Ok(owners) };
        let reference = owner::reference(&self.kind.kind, self.desired, owner)?;
        let mut owners = owners.unwrap_or_default();
        owners.retain(|other| other.uid != reference.uid);
        owners.push(reference);
        Ok(Some(owners))
    }

    async fn send(self) -> Result<Written<K>, Error> {
        let (context, kind, key) = (self.context, self.kind.kind.clone(), Key::of(self.desired));
        let owners = self.owners()?;
        let body = body::of(&kind, self.desired, self.subresource, owners.as_deref())?;
        let manager = self.options.field_owner.as_deref().unwrap_or(context.controller());
        let applier = Applier { manager: manager.into(), subresource: self.subresource, is_replaced: false };
        let request = Request::<K>::new(context, &kind, &key, applier.clone(), &body);
        let is_dry_run = self.options.dry_run || context.is_dry_run();
        let mut current = request.current();
        if let Some(known) = &current {
            owner::expect_controller(&kind, &**known, owners.as_deref().unwrap_or_default())?;
            self.mark.map_or(Ok(()), |mark| mark.expect_on(&K::kind(&kind), known.meta()))?;
            if !is_dry_run && request.has_predecessors(known, context.predecessors()) {
                take_over::take_over::<K>(context, &kind, &key, &applier).await?;
                current = request.current();
            }
        }
        let before = match current {
            None => None,
            Some(current) => match request.outlook(&current)? {
                Outlook::ChangesNothing => return Ok(Written::Unchanged(current)),
                Outlook::Changes(None) => Some(to_value(&*current)?),
                Outlook::Changes(before) => before,
            },
        };
        if self.subresource.is_none() {
            let namespace = key.namespace.clone();
            let child = ObjectMeta { namespace, owner_references: owners, ..ObjectMeta::default() };
            context.look_for_owner(self.mark.map_or(&child, |mark| &mark.owner)).await?;
        }
        let options = WriteOptions { field_owner: Some(manager.to_owned()), ..self.options };
        let send = async || {
            let (intent, action) = (Intent::Fields(&body), Action::Patch(Patch::Apply(&body)));
            context.send_write(&kind, &key, self.subresource, &options, action, intent).await
        };
        let takes = options.force && !is_dry_run && before.is_some();
        let answer = match send().await {
            Err(error) if takes => {
                match make_room::make_room::<K>(context, &kind, &key, &applier, &body, &error).await? {
                    true => send().await?,
                    false => return Err(error),
                }
            }
            answer => answer?,
        };
        let now = to_value(&*answer.object)?;
        if !is_dry_run {
            request.remember(&now, &answer.owned)?;
        }
        Ok(written(context, &kind, self.subresource, before, now, answer))
    }
}

/// What an answer says, beside the object as it was known before, as JSON, and is now.
fn written<K: Cached>(
    context: &Context,
    kind: &K::DynamicType,
    part: Option<&str>,
    before: Option<Value>,
    now: Value,
    answer: Answer<K>,
) -> Written<K> {
    let (key, object) = (Key::of(&*answer.object), answer.object);
    if answer.is_new {
        tracing::debug!(controller = %context.controller(), kind = %K::kind(kind), %key, "created");
        return Written::Created(object);
    }
    let Some(before) = before else { return Written::Updated { object, changed: String::new() } };
    let changed = written::changes::<K>(kind, before, now, part);
    if changed.is_empty() {
        return Written::Unchanged(object);
    }
    tracing::debug!(controller = %context.controller(), kind = %K::kind(kind), %key, %changed, "updated");
    Written::Updated { object, changed }
}

impl<'a, K: Cached> IntoFuture for Apply<'a, K> {
    type Output = Result<Written<K>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}
