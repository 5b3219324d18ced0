//! Whether an apply would change nothing, from what the cache knows.

use std::sync::Arc;

use kubewright_meta::applied;
use serde_json::Value;

use crate::{
    Cached, Context, Error, Informer, Key,
    cache::{Applier, LastApply, Owned, hash},
    object::to_value,
};

/// What an apply would do to the object as it is known.
pub(super) enum Outlook {
    ChangesNothing,
    /// It may change it. The object's JSON, if it was made for this.
    Changes(Option<Value>),
}

/// What is about to be applied to the object `key`.
pub(super) struct Request<'a, K: Cached> {
    informer: Option<Informer<K>>,
    key: &'a Key,
    applier: Applier,
    body: &'a Value,
    asked: u64,
}

impl<'a, K: Cached> Request<'a, K> {
    pub(super) fn new(
        context: &Context,
        kind: &K::DynamicType,
        key: &'a Key,
        applier: Applier,
        body: &'a Value,
    ) -> Self {
        // What is kept in part does not say what there is.
        let informer =
            context.cache().informer_of::<K>(kind).filter(|informer| !informer.erase().is_partial());
        Self { informer, key, applier, body, asked: hash(&body.to_string()) }
    }

    /// The object as it is known.
    pub(super) fn current(&self) -> Option<Arc<K>> {
        self.informer.as_ref()?.get(self.key)
    }

    /// Whether one of these field managers owns anything of the part of `current` that is applied.
    pub(super) fn has_predecessors(&self, current: &K, predecessors: &[String]) -> bool {
        let Some(informer) = &self.informer else { return false };
        let version = current.meta().resource_version.as_deref();
        predecessors.iter().any(|manager| {
            let manager = manager.as_str().into();
            let applier = Applier { manager, is_replaced: true, ..self.applier.clone() };
            informer.applied(self.key, version, &applier).is_some()
        })
    }

    /// Whether the applier owns the same fields of `current` as its last apply of the same left, with the same values; or, where
    /// no apply is known of, those that are wanted now, with the values that are wanted.
    pub(super) fn outlook(&self, current: &K) -> Result<Outlook, Error> {
        let Some(informer) = &self.informer else { return Ok(Outlook::Changes(None)) };
        let version = current.meta().resource_version.as_deref();
        let Some(known) = informer.applied(self.key, version, &self.applier) else {
            return Ok(Outlook::Changes(None));
        };
        let last = known.last.filter(|last| last.asked == self.asked);
        if last.as_ref().is_some_and(|last| last.version.as_deref() == version && version.is_some()) {
            return Ok(Outlook::ChangesNothing);
        }
        let fields: Value = serde_json::from_str(&known.fields)?;
        let object = to_value(current)?;
        let seen = || {
            let values = applied::values(&fields, self.body, &object);
            self.seen(&known.fields, &values, version)
        };
        let is_same = match last {
            Some(last) => {
                let seen = seen();
                (last.fields, last.values) == (seen.fields, seen.values)
            }
            None => applied::is_applied(&fields, &named(self.body), &object),
        };
        if !is_same {
            return Ok(Outlook::Changes(Some(object)));
        }
        informer.remember(self.key, &self.applier, seen());
        Ok(Outlook::ChangesNothing)
    }

    /// Remembers what the apply left: the object that it was answered with, as JSON, of which appliers own this.
    pub(super) fn remember(&self, answer: &Value, owned: &[Owned]) -> Result<(), Error> {
        let Some(informer) = &self.informer else { return Ok(()) };
        let owned = owned.iter().find(|owned| owned.is_of(&self.applier));
        // A server that keeps no managed fields is asked each time.
        let Some(owned) = owned else { return Ok(()) };
        let fields: Value = serde_json::from_str(owned.fields())?;
        let values = applied::values(&fields, self.body, answer);
        // The version is left out: what is known may be newer by now.
        informer.remember(self.key, &self.applier, self.seen(owned.fields(), &values, None));
        Ok(())
    }

    fn seen(&self, fields: &str, values: &Value, version: Option<&str>) -> LastApply {
        LastApply {
            asked: self.asked,
            fields: hash(fields),
            values: hash(&values.to_string()),
            version: version.map(str::to_owned),
        }
    }
}

/// The fields of an apply that its applier comes to own: not those that say which object it is
/// (`stripSet` in `k8s.io/apimachinery/pkg/util/managedfields/internal/stripmeta.go`).
fn named(body: &Value) -> Value {
    let mut fields = body.clone();
    if let Some(fields) = fields.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|field, _| !matches!(field.as_str(), "name" | "namespace" | "uid"));
            if metadata.is_empty() {
                fields.remove("metadata");
            }
        }
    }
    fields
}
