//! Get and list.

use std::sync::Arc;

use base64::engine::general_purpose::{self, GeneralPurpose};
use base64::{Engine, alphabet};
use bytes::Bytes;
use kubewright_store::{Entry, Gone, Revision, Snapshot};
use serde_json::Value;

use super::{Call, ListOptions, Registry, Summary, VersionMatch, encode, summary};
use crate::error::ApiError;
use crate::http::json;
use crate::kinds::Kind;

/// What a list found.
pub struct List {
    /// The kind, in the version asked for.
    pub kind: Arc<Kind>,
    /// The version of the whole.
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
        let mut metadata = serde_json::json!({"resourceVersion": self.revision.0.to_string()});
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

impl Registry {
    /// An object's bytes.
    ///
    /// # Errors
    /// 404; 504 for a resource version that is not there yet.
    pub async fn get(&self, call: Call<'_>, version: &str) -> Result<Bytes, ApiError> {
        if !version.is_empty() {
            let Ok(number) = version.parse() else {
                return Err(ApiError::unexplained(format!(
                    "strconv.ParseUint: parsing {version:?}: invalid syntax"
                )));
            };
            self.not_in_the_future(Revision(number))?;
        }
        let entry = self.viewed(call.kind, self.entry(call)?).await?;
        Ok(encode::object(call.kind, &entry))
    }

    /// The objects of a namespace, or of all, that selectors name: one page of a consistent whole.
    ///
    /// # Errors
    /// 400 for a token that is none; 410 for a version that is no longer kept; 504 for one that is not there yet;
    /// 429 and 500 when objects are stored in a version that the kind no longer has.
    pub async fn list(&self, call: Call<'_>, options: &ListOptions) -> Result<List, ApiError> {
        let cached = options.limit == 0 || options.resource_version == Some(Revision(0));
        if cached {
            encode::all_readable(call.kind)?;
        }
        let found = self.find(call, options)?;
        let viewed = self.viewed_all(call.kind, found.entries).await;
        let refused = |error| if cached { encode::not_cached(call.kind, &error) } else { error };
        Ok(List { entries: viewed.map_err(refused)?, ..found })
    }

    /// The objects that a list shows, or that go together.
    ///
    /// # Errors
    /// As [`Registry::list`].
    pub(super) fn find(&self, call: Call<'_>, options: &ListOptions) -> Result<List, ApiError> {
        let token = options.continue_token.as_deref().map(Token::read).transpose()?;
        if token.is_some() && options.resource_version.is_some_and(|version| version != Revision(0)) {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let snapshot = self.snapshot_for(call.kind, options, token.as_ref())?;
        let limit = if options.resource_version == Some(Revision(0)) { 0 } else { options.limit };
        let prefix = if call.namespace.is_empty() { String::new() } else { format!("{}/", call.namespace) };
        let start = token.as_ref().map(|token| token.start.as_str());
        let only = (!call.name.is_empty()).then(|| call.key());
        let mut entries = Vec::new();
        let mut rest = snapshot.range(&call.kind.collection, &prefix, start);
        for entry in rest.by_ref() {
            if only.as_ref().is_some_and(|only| *only != entry.key) {
                continue;
            }
            if options.matches(call.kind, entry) {
                encode::readable(call.kind, entry)?;
                entries.push(Arc::clone(entry));
                if entries.len() == limit {
                    break;
                }
            }
        }
        let selects = !options.labels.is_everything() || !options.fields.is_everything();
        let mut left = rest.peekable();
        let more = limit > 0 && entries.len() == limit && left.peek().is_some();
        let continue_token = more
            .then(|| {
                entries
                    .last()
                    .map(|last| Token { revision: snapshot.revision(), start: last.key.to_string() }.write())
            })
            .flatten();
        let remaining = (more && !selects).then(|| left.count());
        Ok(List {
            kind: Arc::clone(call.kind),
            revision: snapshot.revision(),
            entries,
            continue_token,
            remaining,
        })
    }

    fn snapshot_for(
        &self,
        kind: &Kind,
        options: &ListOptions,
        token: Option<&Token>,
    ) -> Result<Snapshot<Summary>, ApiError> {
        if let Some(token) = token {
            return self.store.snapshot_at(&kind.collection, token.revision).map_err(|_| continue_expired());
        }
        let Some(version) = options.resource_version.filter(|version| *version != Revision(0)) else {
            return Ok(self.store.snapshot());
        };
        self.not_in_the_future(version)?;
        let exact = match options.version_match {
            Some(VersionMatch::Exact) => true,
            Some(VersionMatch::NotOlderThan) => false,
            None => options.limit > 0,
        };
        if exact {
            self.store.snapshot_at(&kind.collection, version).map_err(|gone| too_old(&gone))
        } else {
            Ok(self.store.snapshot())
        }
    }

    /// 504 for a version that no commit has reached.
    pub(crate) fn not_in_the_future(&self, asked: Revision) -> Result<(), ApiError> {
        let newest = self.store.revision();
        if asked <= newest {
            return Ok(());
        }
        Err(ApiError::new(
            http::StatusCode::GATEWAY_TIMEOUT,
            "Timeout",
            format!("Too large resource version: {}, current: {}", asked.0, newest.0),
        )
        .with_details(serde_json::json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1
        })))
    }
}

impl ListOptions {
    /// Whether the selectors name an object of `kind`.
    #[must_use]
    pub fn matches(&self, kind: &Kind, entry: &Entry<Summary>) -> bool {
        self.labels.matches_by(|key| entry.tag.label(key)) && summary::is_selected(&self.fields, kind, entry)
    }
}

/// 410 for a list or watch at a version that is no longer kept.
pub(crate) fn too_old(gone: &Gone) -> ApiError {
    ApiError::expired(format!("too old resource version: {} ({})", gone.asked.0, gone.oldest.0))
}

fn continue_expired() -> ApiError {
    ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
    )
}

/// How tokens are written: Base64 for URLs; last bits that say nothing are taken as Go takes them.
const TOKEN: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, general_purpose::NO_PAD.with_decode_allow_trailing_bits(true));

/// Where a list goes on: the version of its first page and the last key seen.
struct Token {
    revision: Revision,
    start: String,
}

impl Token {
    fn write(&self) -> String {
        let text = serde_json::json!({"v": "meta.k8s.io/v1", "rv": self.revision.0, "start": self.start})
            .to_string();
        TOKEN.encode(text)
    }

    fn read(text: &str) -> Result<Self, ApiError> {
        let wrong = |why: &str| {
            ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = TOKEN.decode(text).map_err(|error| wrong(&error.to_string()))?;
        let value = json::decode(&bytes).map_err(|error| wrong(&error))?.value;
        match (value["rv"].as_u64(), value["start"].as_str()) {
            (Some(revision), Some(start)) => {
                Ok(Self { revision: Revision(revision), start: start.to_owned() })
            }
            _ => Err(wrong("it has no version or no start")),
        }
    }
}
