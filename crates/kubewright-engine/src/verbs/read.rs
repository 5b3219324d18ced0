//! Get and list.

use std::sync::Arc;

use kubewright_kinds::{Kind, Summary, encode, unreadable};
use kubewright_meta::ApiError;
use kubewright_store::{Entry, Gone, Revision, Snapshot};
use serde_json::Value;

use super::select::{self, Selected};
use crate::engine::{Engine, convert};
use crate::request::continue_token::{Start, Token};
use crate::request::{Call, ListOptions, VersionMatch, key, parse_version};

/// What a list found.
pub struct List {
    /// The kind, in the version asked for.
    pub kind: Arc<Kind>,
    /// The version of the whole; 0 where it has none.
    pub revision: Revision,
    /// The objects, in the order of their keys.
    pub entries: Vec<Arc<Entry<Summary>>>,
    /// Where the next page begins.
    pub continue_token: Option<String>,
    /// How many are left after this page, when that is known.
    pub remaining: Option<usize>,
}

impl List {
    /// The beginning of the list's JSON, up to the opening bracket of the items.
    #[must_use]
    pub fn head(&self) -> String {
        format!(
            "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{},\"items\":[",
            Value::from(self.kind.list_kind.as_str()),
            Value::from(self.kind.api_version()),
            self.metadata()
        )
    }

    /// The metadata of the list.
    #[must_use]
    pub fn metadata(&self) -> Value {
        let mut metadata = serde_json::json!({});
        if self.revision != Revision(0) {
            metadata["resourceVersion"] = self.revision.0.to_string().into();
        }
        if let Some(token) = &self.continue_token {
            metadata["continue"] = token.clone().into();
        } else if self.kind.custom.is_some() {
            metadata["continue"] = "".into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }
}

/// An object, in the version asked for, as it is read.
///
/// # Errors
/// 404; 504 for a resource version that is not there yet.
pub async fn get(engine: &Engine, call: Call<'_>, version: &str) -> Result<Arc<Entry<Summary>>, ApiError> {
    Ok(encode::shown(call.kind, get_stored(engine, call, version).await?))
}

/// An object, in the version asked for, with all that is stored of it: as who reads a part of it sees it.
///
/// # Errors
/// As [`get`].
pub async fn get_stored(
    engine: &Engine,
    call: Call<'_>,
    version: &str,
) -> Result<Arc<Entry<Summary>>, ApiError> {
    if !version.is_empty() {
        // The watch cache of a kind and the store behind it refuse a bad version each in its own way.
        let refused = |why: String| match call.kind.behaviour.is_cached {
            true => ApiError::unexplained(why),
            false => ApiError::bad_request(format!("invalid resource version: {why}")),
        };
        not_in_the_future(engine, call.kind, parse_version(version).map_err(refused)?)?;
    }
    convert::viewed(engine, call.kind, engine.entry(call)?).await
}

/// The objects of a namespace, or of all, that selectors name: one page of a consistent whole.
///
/// # Errors
/// 400 for a token that is none; 410 for a version that is no longer kept; 504 for one that is not there yet;
/// 429 and 500 when objects are stored in a version that the kind no longer has.
pub async fn list(engine: &Engine, call: Call<'_>, options: &ListOptions) -> Result<List, ApiError> {
    let cached = options.limit == 0 || options.resource_version == Some(Revision(0));
    if cached {
        let snapshot = engine.snapshot();
        unreadable::check_cache(
            call.kind,
            snapshot.range(&call.kind.collection, "", None).map(AsRef::as_ref),
        )?;
    }
    let refused = |error| if cached { unreadable::not_cached(call.kind, &error) } else { error };
    find(engine, call, options, refused).await
}

/// The objects that a list shows, or that go together; `refused` makes the answer when one of them cannot be read.
///
/// # Errors
/// As [`list`].
pub(super) async fn find(
    engine: &Engine,
    call: Call<'_>,
    options: &ListOptions,
    refused: impl FnOnce(ApiError) -> ApiError,
) -> Result<List, ApiError> {
    let token = options.continue_token.as_deref().map(Token::read).transpose()?;
    if token.is_some() && options.resource_version.is_some_and(|version| version != Revision(0)) {
        return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
    }
    if token.is_some() || options.limit > 0 || options.version_match.is_some() {
        engine.outlive_the_past().await;
    }
    let single = options.single(&call);
    let snapshot = snapshot_for(engine, call.kind, options, (token.as_ref(), single.is_some()))?;
    // The watch cache, which not all kinds have, tells all at once.
    let cached = options.resource_version == Some(Revision(0)) && call.kind.behaviour.is_cached;
    let limit = if cached { 0 } else { options.limit };
    let prefix = if call.namespace.is_empty() { String::new() } else { format!("{}/", call.namespace) };
    let start = token.as_ref().map(Token::start);
    let after = match start {
        Some(Start::After(key)) => Some(format!("{prefix}{key}")),
        Some(Start::At(_)) | None => None,
    };
    let at = match start {
        Some(Start::At(key)) => format!("{prefix}{key}"),
        Some(Start::After(_)) | None => String::new(),
    };
    let only = single.map(|(namespace, name)| key(namespace, name));
    let mut rest = snapshot
        .range(&call.kind.collection, only.as_deref().unwrap_or(&prefix), after.as_deref())
        .skip_while(|entry| *entry.key < *at)
        .filter(|entry| only.as_ref().is_none_or(|only| *only == entry.key));
    let most = if limit == 0 { usize::MAX } else { limit };
    let found = select::select(engine, call.kind, options, &mut rest, most).await;
    let Selected { entries, looked_further } = found.map_err(refused)?;
    // That there is more means that there are more objects, whether selected or not.
    let mut left = rest.peekable();
    let more = entries.len() == most && (looked_further || left.peek().is_some());
    let continue_token = entries.last().filter(|_| more).map(|last| {
        let key = last.key.strip_prefix(prefix.as_str()).unwrap_or(&last.key);
        Token::after(snapshot.revision(), key).write()
    });
    let remaining = (more && options.selects_all()).then(|| left.count());
    Ok(List {
        kind: Arc::clone(call.kind),
        revision: snapshot.revision(),
        entries,
        continue_token,
        remaining,
    })
}

/// The state of the cluster that a list tells: that of the version that it names where it asks for it, or, without a word on that, for a page
/// of it; but not for one object, which is read as it is now (`k8s.io/apiserver/pkg/storage/interfaces.go`, `ValidateListOptions`).
fn snapshot_for(
    engine: &Engine,
    kind: &Kind,
    options: &ListOptions,
    (token, is_of_one): (Option<&Token>, bool),
) -> Result<Snapshot<Summary>, ApiError> {
    if let Some(token) = token {
        let Some(revision) = token.revision else { return Ok(engine.store().snapshot()) };
        return kept(engine, kind, revision).ok_or_else(|| continue_expired(token));
    }
    let Some(version) = options.resource_version.filter(|version| *version != Revision(0)) else {
        return Ok(engine.store().snapshot());
    };
    not_in_the_future(engine, kind, version)?;
    let exact = match options.version_match {
        Some(VersionMatch::Exact) => true,
        Some(VersionMatch::NotOlderThan) => false,
        None => options.limit > 0 && !is_of_one,
    };
    if exact {
        kept(engine, kind, version)
            .ok_or_else(|| ApiError::expired("The resourceVersion for the provided list is too old."))
    } else {
        Ok(engine.store().snapshot())
    }
}

/// The objects of a kind as they were at a version; none where that is too long ago, in time or in changes.
fn kept(engine: &Engine, kind: &Kind, version: Revision) -> Option<Snapshot<Summary>> {
    let remembered = engine.remembers(version);
    remembered.then(|| engine.store().snapshot_at(&kind.collection, version).ok()).flatten()
}

/// 504 for a version that no commit has reached.
pub(crate) fn not_in_the_future(engine: &Engine, kind: &Kind, asked: Revision) -> Result<(), ApiError> {
    let newest = engine.store().revision();
    if asked <= newest {
        return Ok(());
    }
    let mut details = serde_json::json!({
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    });
    if kind.behaviour.is_cached {
        details["retryAfterSeconds"] = 1.into();
    }
    Err(ApiError::new(
        http::StatusCode::GATEWAY_TIMEOUT,
        "Timeout",
        format!("Timeout: Too large resource version: {}, current: {}", asked.0, newest.0),
    )
    .with_details(details))
}

/// 410 for a watch at a version that is no longer kept.
pub(crate) fn too_old(gone: &Gone) -> ApiError {
    ApiError::expired(format!("too old resource version: {} ({})", gone.asked.0, gone.oldest.0))
}

/// The version whose objects a `continue` token lists, and what is said when they are no longer kept; `None` for a token
/// that lists what is there now, or is none.
#[must_use]
pub fn expired_page(token: &str) -> Option<(Revision, ApiError)> {
    let token = Token::read(token).ok()?;
    token.revision.map(|revision| (revision, continue_expired(&token)))
}

/// 410 for a page of a list whose first page is no longer kept, with a token for the rest as it is now
/// (`k8s.io/apiserver/pkg/storage/etcd3/errors.go`).
fn continue_expired(token: &Token) -> ApiError {
    ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    )
    .with_continue(token.inconsistent().write())
}
