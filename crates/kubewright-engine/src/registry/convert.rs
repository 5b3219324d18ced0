//! Custom resources in another version than the stored one, where that takes a webhook. Kinds without one pass through
//! untouched: what they need is done as their bytes are read ([`kubewright_kinds::encode`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kubewright_identity::webhook::Failure;
use kubewright_kinds::conversion::Webhook;
use kubewright_kinds::definition::Versions;
use kubewright_kinds::{Kind, Summary, encode};
use kubewright_meta::{ApiError, object};
use kubewright_store::{Entry, Event, Revision};
use parking_lot::Mutex;
use serde_json::Value;

use super::Registry;

/// How long a webhook may take (`k8s.io/apiserver/pkg/util/webhook/webhook.go`, `requestTimeout`).
const TIMEOUT: Duration = Duration::from_secs(30);

/// How many converted entries are kept.
const MOST_KEPT: usize = 10_000;

/// Views of entries that webhooks have converted for lists and watches, by version and revision; until a definition changes.
#[derive(Default)]
pub(super) struct Converted(Mutex<BTreeMap<Key, Arc<Entry<Summary>>>>);

/// The version asked for, and the commit that made the entry.
type Key = (String, Revision);

impl Converted {
    fn get(&self, version: &str, entry: &Entry<Summary>) -> Option<Arc<Entry<Summary>>> {
        self.0.lock().get(&(version.to_owned(), entry.revision)).cloned()
    }

    /// Keeps views, if what made them `still_holds`.
    fn keep(&self, version: &str, views: &[Arc<Entry<Summary>>], still_holds: impl Fn() -> bool) {
        let mut kept = self.0.lock();
        if !still_holds() {
            return;
        }
        for view in views {
            if kept.len() >= MOST_KEPT {
                kept.clear();
            }
            kept.insert((version.to_owned(), view.revision), Arc::clone(view));
        }
    }

    /// Forgets them all with a change of what made them.
    pub(super) fn forget(&self, change: impl FnOnce()) {
        let mut kept = self.0.lock();
        change();
        kept.clear();
    }
}

impl Registry {
    /// A view of an entry in the version of `kind`, where somebody has to be asked for it, or else the entry.
    ///
    /// # Errors
    /// 500 when its webhook does not convert it.
    pub(crate) async fn viewed(
        &self,
        kind: &Kind,
        entry: Arc<Entry<Summary>>,
    ) -> Result<Arc<Entry<Summary>>, ApiError> {
        if !encode::is_to_be_converted(kind, &entry) {
            return Ok(entry);
        }
        let mut viewed = self.views(kind, std::slice::from_ref(&entry)).await?;
        Ok(viewed.pop().unwrap_or(entry))
    }

    /// The entries of a list or a watch in the version of `kind`: those that are not yet known are converted in one call.
    ///
    /// # Errors
    /// 500 when the webhook does not convert them.
    pub(crate) async fn viewed_all(
        &self,
        kind: &Kind,
        mut entries: Vec<Arc<Entry<Summary>>>,
    ) -> Result<Vec<Arc<Entry<Summary>>>, ApiError> {
        let mut asked = Vec::new();
        for (at, entry) in entries.iter_mut().enumerate() {
            if encode::is_to_be_converted(kind, entry) {
                match self.converted.get(&kind.version, entry) {
                    Some(known) => *entry = known,
                    None => asked.push(at),
                }
            }
        }
        if asked.is_empty() {
            return Ok(entries);
        }
        let unknown: Vec<_> = asked.iter().map(|at| Arc::clone(&entries[*at])).collect();
        let views = self.views(kind, &unknown).await?;
        self.converted.keep(&kind.version, &views, || self.serves(kind));
        for (at, view) in asked.into_iter().zip(views) {
            entries[at] = view;
        }
        Ok(entries)
    }

    /// Whether a webhook is asked for objects in the version of `kind`: better for many at once.
    pub(crate) fn asks_to_view(&self, kind: &Kind) -> bool {
        converter(kind).is_some()
    }

    /// Events in the version of `kind`.
    ///
    /// # Errors
    /// As [`Registry::viewed_all`].
    pub(crate) async fn viewed_events(
        &self,
        kind: &Kind,
        events: Vec<Arc<Event<Summary>>>,
    ) -> Result<Vec<Arc<Event<Summary>>>, ApiError> {
        if converter(kind).is_none() {
            return Ok(events);
        }
        let both = events.iter().flat_map(|event| std::iter::once(&event.entry).chain(&event.previous));
        let mut viewed = self.viewed_all(kind, both.cloned().collect()).await?.into_iter();
        let mut next = |entry: &Arc<Entry<Summary>>| viewed.next().unwrap_or_else(|| Arc::clone(entry));
        let converted = events.iter().map(|event| {
            let entry = next(&event.entry);
            let previous = event.previous.as_ref().map(&mut next);
            Arc::new(Event { happening: event.happening, entry, previous })
        });
        Ok(converted.collect())
    }

    /// An object of `kind` as it will be stored.
    ///
    /// # Errors
    /// 500 when its webhook does not convert it.
    pub(super) async fn in_storage_version(&self, kind: &Kind, object: Value) -> Result<Value, ApiError> {
        let Some((versions, webhook)) = converter(kind) else { return Ok(object) };
        if kind.version == versions.storage() {
            return Ok(object);
        }
        let objects = [object];
        let mut converted = self.ask(webhook, &kind.storage_api_version(), &objects).await?;
        let [object] = objects;
        Ok(converted.pop().unwrap_or(object))
    }

    /// An object of another version as one of the version of `kind`; `None` where nobody has to be asked for that.
    ///
    /// # Errors
    /// 500 when its webhook does not convert it.
    pub async fn in_version(&self, kind: &Kind, object: &Value) -> Result<Option<Value>, ApiError> {
        let Some((versions, webhook)) = converter(kind) else { return Ok(None) };
        let asked = self.ask(webhook, &kind.api_version(), std::slice::from_ref(object)).await?;
        Ok(asked.into_iter().next().map(|mut converted| {
            versions.fit(&kind.version, &mut converted);
            converted
        }))
    }

    /// What the answer to a write is that is not done: the object as it would be read after it was stored
    /// (`k8s.io/apiserver/pkg/registry/generic/registry/dryrun.go`, `copyInto`).
    ///
    /// # Errors
    /// 500 when its webhook does not convert it.
    pub(super) async fn as_read_back(&self, kind: &Kind, object: Value) -> Result<Bytes, ApiError> {
        let Some(custom) = &kind.custom else { return Ok(encode::bytes(kind, &object)) };
        let versions = &custom.versions;
        let mut object = self.in_storage_version(kind, object).await?;
        versions.store(&mut object);
        if converter(kind).is_some() && kind.version != versions.storage() {
            versions.read(versions.storage(), false, &mut object);
            object = self.in_version(kind, &object).await?.unwrap_or(object);
        } else {
            versions.read(&kind.version, false, &mut object);
        }
        Ok(encode::bytes(kind, &object))
    }

    /// Whether this is a kind as it is served now.
    fn serves(&self, kind: &Kind) -> bool {
        let kinds = self.kinds.load();
        kinds.get(&kind.group, &kind.version, &kind.plural).is_some_and(|now| std::ptr::eq(&**now, kind))
    }

    /// Views of entries that a webhook has to be asked for.
    async fn views(
        &self,
        kind: &Kind,
        entries: &[Arc<Entry<Summary>>],
    ) -> Result<Vec<Arc<Entry<Summary>>>, ApiError> {
        let Some((versions, webhook)) = converter(kind) else { return Ok(entries.to_vec()) };
        let mut objects = Vec::with_capacity(entries.len());
        for entry in entries {
            encode::readable(kind, entry)?;
            let mut object = encode::in_own_version(versions, entry);
            // What is stored has no version of its own: it is put in when it is read.
            object::set_meta(&mut object, "resourceVersion", None);
            objects.push(object);
        }
        let converted = self.ask(webhook, &kind.api_version(), &objects).await?;
        let view = |(entry, mut object): (&Arc<Entry<Summary>>, Value)| {
            versions.fit(&kind.version, &mut object);
            object::set_meta(&mut object, "resourceVersion", Some(entry.revision.0.to_string().into()));
            Arc::new(Entry {
                key: entry.key.clone(),
                bytes: encode::bytes(kind, &object),
                revision: entry.revision,
                tag: Arc::new(Summary::of_view(kind, &object)),
            })
        };
        Ok(entries.iter().zip(converted).map(view).collect())
    }

    /// Asks a webhook for objects in another version.
    async fn ask(&self, webhook: &Webhook, wanted: &str, objects: &[Value]) -> Result<Vec<Value>, ApiError> {
        let target = webhook.target.as_ref().map_err(ApiError::unexplained)?;
        let review = webhook.review(self.world.dice.uid(), wanted, objects).map_err(ApiError::unexplained)?;
        let body = review.request().to_string().into();
        let answer = self.webhooks().post(target, &self.snapshot(), body, TIMEOUT).await;
        let answer = answer.map_err(|failure| {
            ApiError::unexplained(match failure {
                Failure::Setup(why) => why,
                Failure::Call(why) | Failure::Later(why) => review.failed(&why),
            })
        })?;
        review.converted(&answer).map_err(ApiError::unexplained)
    }
}

/// Who converts between the versions of a kind, where somebody has to be asked.
fn converter(kind: &Kind) -> Option<(&Versions, &Webhook)> {
    let versions = &*kind.custom.as_ref()?.versions;
    Some((versions, versions.webhook()?))
}
