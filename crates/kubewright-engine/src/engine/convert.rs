//! Custom resources in another version than the stored one, where that takes a webhook. Kinds without one pass through
//! untouched: what they need is done as their bytes are read ([`kubewright_kinds::encode`]).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kubewright_identity::webhook::Failure;
use kubewright_kinds::conversion::Webhook;
use kubewright_kinds::definition::Versions;
use kubewright_kinds::{Kind, Summary, Wanted, encode, unreadable};
use kubewright_meta::{ApiError, object};
use kubewright_store::{Entry, Event};
use serde_json::Value;

use super::Engine;
use crate::verbs::Part;

/// How long a webhook may take (`k8s.io/apiserver/pkg/util/webhook/webhook.go`, `requestTimeout`).
const TIMEOUT: Duration = Duration::from_secs(30);

/// A view of an entry in the version of `kind`, where somebody has to be asked for it, or else the entry.
///
/// # Errors
/// 500 when its webhook does not convert it.
pub(crate) async fn viewed(
    engine: &Engine,
    kind: &Kind,
    entry: Arc<Entry<Summary>>,
) -> Result<Arc<Entry<Summary>>, ApiError> {
    if !encode::is_to_be_converted(kind, &entry) {
        return Ok(entry);
    }
    let mut viewed = views(engine, kind, std::slice::from_ref(&entry)).await?;
    Ok(viewed.pop().unwrap_or(entry))
}

/// The entries of a list or a watch in the version of `kind`: those that are not yet known are converted in one call.
///
/// # Errors
/// 500 when the webhook does not convert them.
pub(crate) async fn viewed_all(
    engine: &Engine,
    kind: &Kind,
    mut entries: Vec<Arc<Entry<Summary>>>,
) -> Result<Vec<Arc<Entry<Summary>>>, ApiError> {
    let mut asked = Vec::new();
    for (at, entry) in entries.iter_mut().enumerate() {
        if encode::is_to_be_converted(kind, entry) {
            match engine.served.view(&kind.version, entry) {
                Some(known) => *entry = known,
                None => asked.push(at),
            }
        }
    }
    if asked.is_empty() {
        return Ok(entries);
    }
    let unknown: Vec<_> = asked.iter().map(|at| Arc::clone(&entries[*at])).collect();
    let views = views(engine, kind, &unknown).await?;
    engine.served.keep(kind, &views);
    for (at, view) in asked.into_iter().zip(views) {
        entries[at] = view;
    }
    Ok(entries)
}

/// Whether a webhook is asked for objects in the version of `kind`: better for many at once.
pub(crate) fn asks_to_view(kind: &Kind) -> bool {
    converter(kind).is_some()
}

/// Events in the version of `kind`.
///
/// # Errors
/// As [`viewed_all`].
pub(crate) async fn viewed_events(
    engine: &Engine,
    kind: &Kind,
    events: Vec<Arc<Event<Summary>>>,
) -> Result<Vec<Arc<Event<Summary>>>, ApiError> {
    if converter(kind).is_none() {
        return Ok(events);
    }
    let both = events.iter().flat_map(|event| std::iter::once(&event.entry).chain(&event.previous));
    let mut viewed = viewed_all(engine, kind, both.cloned().collect()).await?.into_iter();
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
pub(crate) async fn in_storage_version(
    engine: &Engine,
    kind: &Kind,
    object: Value,
) -> Result<Value, ApiError> {
    let Some((versions, webhook)) = converter(kind) else { return Ok(object) };
    if kind.version == versions.storage() {
        return Ok(object);
    }
    let objects = [object];
    let mut converted = ask(engine, webhook, &kind.storage_api_version(), &objects).await?;
    let [object] = objects;
    Ok(converted.pop().unwrap_or(object))
}

/// An object of another version as one of the version of `kind`; `None` where nobody has to be asked for that.
///
/// # Errors
/// 500 when its webhook does not convert it.
pub(crate) async fn in_version(
    engine: &Engine,
    kind: &Kind,
    object: &Value,
) -> Result<Option<Value>, ApiError> {
    let Some((versions, webhook)) = converter(kind) else { return Ok(None) };
    let asked = ask(engine, webhook, &kind.api_version(), std::slice::from_ref(object)).await?;
    Ok(asked.into_iter().next().map(|mut converted| {
        versions.fit(&kind.version, &mut converted);
        converted
    }))
}

/// An object in another version of `kind`, as its managers see it: nothing is pruned.
///
/// # Errors
/// 500 when its webhook does not convert it.
pub(crate) async fn between(engine: &Engine, kind: &Kind, wanted: &Wanted) -> Result<Value, ApiError> {
    let Some((_, webhook)) = converter(kind) else { return Ok(wanted.object.clone()) };
    let asked = ask(engine, webhook, &wanted.api_version, std::slice::from_ref(&wanted.object)).await?;
    Ok(asked.into_iter().next().unwrap_or_default())
}

/// What the answer to a write is that is not done: the object as it would be read after it was stored
/// (`k8s.io/apiserver/pkg/registry/generic/registry/dryrun.go`, `copyInto`).
///
/// # Errors
/// 500 when its webhook does not convert it.
pub(crate) async fn as_read_back(
    engine: &Engine,
    kind: &Kind,
    part: Part,
    object: Value,
) -> Result<Bytes, ApiError> {
    let Some(custom) = &kind.custom else {
        let mut object = object;
        hide(kind, part, &mut object);
        if !kind.is_storage() {
            kind.to_storage(&mut object);
            kind.to_served(&mut object);
        }
        return Ok(encode::bytes(kind, &object));
    };
    let versions = &custom.versions;
    let mut object = in_storage_version(engine, kind, object).await?;
    versions.store(&mut object);
    if converter(kind).is_some() && kind.version != versions.storage() {
        versions.read(versions.storage(), false, &mut object);
        object = in_version(engine, kind, &object).await?.unwrap_or(object);
    } else {
        versions.read(&kind.version, false, &mut object);
    }
    encode::whole_numbers(&mut object);
    Ok(encode::bytes(kind, &object))
}

/// An entry as who wrote a part of it is answered.
pub(crate) fn answered(kind: &Kind, part: Part, entry: Arc<Entry<Summary>>) -> Bytes {
    let shown = if part == Part::Status { entry } else { encode::shown(kind, entry) };
    encode::object(kind, &shown)
}

/// Takes out of an object what who wrote a part of it is not answered.
pub(crate) fn hide(kind: &Kind, part: Part, object: &mut Value) {
    if part != Part::Status {
        encode::hide(kind, object);
    }
}

/// Views of entries that a webhook has to be asked for.
async fn views(
    engine: &Engine,
    kind: &Kind,
    entries: &[Arc<Entry<Summary>>],
) -> Result<Vec<Arc<Entry<Summary>>>, ApiError> {
    let Some((versions, webhook)) = converter(kind) else { return Ok(entries.to_vec()) };
    let mut objects = Vec::with_capacity(entries.len());
    for entry in entries {
        unreadable::check_to_write(kind, entry)?;
        let mut object = encode::in_own_version(versions, entry);
        // What is stored has no version of its own: it is put in when it is read.
        object::set_meta(&mut object, "resourceVersion", None);
        objects.push(object);
    }
    let converted = ask(engine, webhook, &kind.api_version(), &objects).await?;
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
async fn ask(
    engine: &Engine,
    webhook: &Webhook,
    wanted: &str,
    objects: &[Value],
) -> Result<Vec<Value>, ApiError> {
    let target = webhook.target.as_ref().map_err(ApiError::unexplained)?;
    let review = webhook.review(engine.world().dice.uid(), wanted, objects).map_err(ApiError::unexplained)?;
    let body = review.request().to_string().into();
    let answer = engine.webhooks().post(target, &engine.snapshot(), body, TIMEOUT).await;
    let answer = answer.map_err(|failure| {
        ApiError::unexplained(match failure {
            Failure::Setup(why) => why,
            Failure::Call(why) | Failure::Later(why) => review.failed(&why),
        })
    })?;
    review.converted(&answer).map_err(ApiError::unexplained)
}

/// Who converts between the versions of a kind, where somebody has to be asked.
fn converter(kind: &Kind) -> Option<(&Versions, &Webhook)> {
    let versions = &*kind.custom.as_ref()?.versions;
    Some((versions, versions.webhook()?))
}
