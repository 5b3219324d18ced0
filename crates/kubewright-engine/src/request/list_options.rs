//! The options of lists, watches and deletions of many (`k8s.io/apimachinery/pkg/apis/meta/v1`, ListOptions).

use std::time::Duration;

use kubewright_codec::request::Query;
use kubewright_kinds::selector::{FieldSelector, NAME, NAMESPACE};
use kubewright_kinds::{Kind, Summary, encode, summary};
use kubewright_meta::selector::LabelSelector;
use kubewright_meta::{ApiError, FieldError};
use kubewright_store::{Entry, Revision};

use super::{Call, parse_version};

/// How a list relates to the resource version that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// At this version or a later one.
    NotOlderThan,
    /// At exactly this version.
    Exact,
}

/// What is listed, watched, or deleted together.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Objects with these labels.
    pub labels: LabelSelector,
    /// Objects with these fields.
    pub fields: FieldSelector,
    /// The most items of one answer; 0 for all.
    pub limit: usize,
    /// Where the next answer goes on.
    pub continue_token: Option<String>,
    /// The version named; `Revision(0)` is "any".
    pub resource_version: Option<Revision>,
    /// How the version is meant.
    pub version_match: Option<VersionMatch>,
    /// A stream of changes instead of a list.
    pub watch: bool,
    /// The watch may send bookmarks.
    pub bookmarks: bool,
    /// The watch begins with what is there.
    pub initial_events: Option<bool>,
    /// How long the watch lasts; one that is to end before it begins lasts no time.
    pub timeout: Option<Duration>,
}

/// Which objects are to be deleted together. The version that is named is read last of all: it is storage that reads it.
#[derive(Clone, Debug)]
pub struct DeletedTogether {
    options: ListOptions,
    version: String,
}

impl DeletedTogether {
    /// Reads them from a query: options of a watch are judged as such, and not followed.
    ///
    /// # Errors
    /// As [`ListOptions::read`], but for the version.
    pub fn read(query: &Query, kind: &Kind) -> Result<Self, ApiError> {
        let options = ListOptions::checked(query, kind, false, query.flag("watch"))?;
        Ok(Self { options, version: query.text("resourceVersion").to_owned() })
    }

    /// With the version, which is meant exactly where it is not said how: objects are deleted page by page, and so they are listed with
    /// a limit (`Store.DeleteCollection`).
    ///
    /// # Errors
    /// 400 for a version that is none.
    pub fn options(self) -> Result<ListOptions, ApiError> {
        let resource_version = version(&self.version, false)?;
        let exact = resource_version.filter(|version| *version != Revision(0)).map(|_| VersionMatch::Exact);
        let version_match = self.options.version_match.or(exact);
        Ok(ListOptions { resource_version, version_match, ..self.options })
    }
}

impl ListOptions {
    /// Reads them from a query; `watch` tells what the request is, as the path may ask for a watch too.
    ///
    /// # Errors
    /// 400 for what cannot be read, 422 for combinations that make no sense.
    pub fn read(query: &Query, kind: &Kind, watch: bool) -> Result<Self, ApiError> {
        let options = Self::checked(query, kind, watch, watch)?;
        Ok(Self { resource_version: version(query.text("resourceVersion"), watch)?, ..options })
    }

    /// All but the version.
    fn checked(query: &Query, kind: &Kind, watch: bool, as_watch: bool) -> Result<Self, ApiError> {
        let limit = query.number("limit")?.unwrap_or(0);
        let timeout = query.number("timeoutSeconds")?;
        let labels = LabelSelector::parse(query.text("labelSelector")).map_err(ApiError::bad_request)?;
        let initial_events = query.get("sendInitialEvents").map(|_| query.flag("sendInitialEvents"));
        FieldSelector::check(query.text("fieldSelector")).map_err(ApiError::bad_request)?;
        check(query, as_watch, initial_events)?;
        let fields = FieldSelector::parse(query.text("fieldSelector"), kind.selectable())
            .map_err(ApiError::bad_request)?;
        let version_match = match query.text("resourceVersionMatch") {
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            "Exact" => Some(VersionMatch::Exact),
            _ => None,
        };
        Ok(Self {
            labels,
            fields,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: query.get("continue").filter(|token| !token.is_empty()).map(str::to_owned),
            resource_version: None,
            version_match,
            watch,
            bookmarks: query.flag("allowWatchBookmarks"),
            initial_events,
            timeout: timeout
                .filter(|seconds| *seconds != 0)
                .map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0))),
        })
    }

    /// The same for the one object that a path names, where it names one.
    ///
    /// # Errors
    /// 400 for a field selector that is there too.
    pub fn for_name(self, call: Call<'_>) -> Result<Self, ApiError> {
        if call.name.is_empty() {
            return Ok(self);
        }
        if !self.fields.is_everything() && self.fields.exact("metadata.name") != Some(call.name) {
            return Err(ApiError::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        let fields =
            FieldSelector::parse(&format!("metadata.name={}", escaped(call.name)), call.kind.selectable())
                .map_err(ApiError::bad_request)?;
        Ok(Self { fields, ..self })
    }

    /// Whether the selectors name an object of `kind`, as that version shows it: where a webhook converts it, this is asked of
    /// the view that the webhook has made of the entry.
    #[must_use]
    pub fn matches(&self, kind: &Kind, entry: &Entry<Summary>) -> bool {
        self.labels.matches_by(|key| entry.tag.label(key)) && summary::is_selected(&self.fields, kind, entry)
    }

    /// What [`ListOptions::matches`] will say of a view of an entry, as far as that is known before there is one.
    pub(crate) fn foresees(&self, kind: &Kind, entry: &Entry<Summary>) -> Option<bool> {
        let by_name = self.labels.is_everything() && self.fields.is_of_names();
        if by_name || !encode::is_to_be_converted(kind, entry) {
            return Some(self.matches(kind, entry));
        }
        let (namespace, name) = summary::place(entry);
        (!self.fields.may_match(namespace, name)).then_some(false)
    }

    /// The name and namespace of the one object that they may name on a first page, where they say both; the namespace may be
    /// that of the request (`k8s.io/apiserver/pkg/storage/selection_predicate.go`, `MatchesSingle`).
    pub(crate) fn single<'a>(&'a self, call: &Call<'a>) -> Option<(&'a str, &'a str)> {
        if !call.name.is_empty() {
            return Some((call.namespace, call.name));
        }
        let name = self.fields.exact(NAME).filter(|_| self.continue_token.is_none())?;
        if !call.kind.namespaced() || !call.namespace.is_empty() {
            return Some((call.namespace, name));
        }
        Some((self.fields.exact(NAMESPACE)?, name))
    }

    /// Whether all objects are named.
    pub(crate) fn selects_all(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }
}

fn escaped(name: &str) -> String {
    name.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
}

/// The rules of `k8s.io/apimachinery/pkg/apis/meta/internalversion/validation`.
fn check(query: &Query, watch: bool, initial_events: Option<bool>) -> Result<(), ApiError> {
    let version_match = query.text("resourceVersionMatch");
    let continues = !query.text("continue").is_empty();
    let mut errors = Vec::new();
    let mut forbidden = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
    let field = "resourceVersionMatch";
    let with_continue = "resourceVersionMatch is forbidden when continue is provided";
    if watch {
        if initial_events.is_some() && version_match != "NotOlderThan" {
            forbidden(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if !version_match.is_empty() && initial_events.is_none() {
            forbidden(
                field,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        if !matches!(version_match, "" | "NotOlderThan") {
            errors.push(FieldError::not_supported(field, version_match, ["NotOlderThan"]));
        }
        if continues {
            errors.push(FieldError::forbidden(field, with_continue));
        }
    } else {
        if !version_match.is_empty() {
            let version = query.text("resourceVersion");
            if version.is_empty() {
                forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if continues {
                forbidden(field, with_continue);
            }
            if !matches!(version_match, "Exact" | "NotOlderThan") {
                errors.push(FieldError::not_supported(field, version_match, ["Exact", "NotOlderThan", ""]));
            }
            if version_match == "Exact" && version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(field, why));
            }
        }
        if initial_events.is_some() {
            let why = "sendInitialEvents is forbidden for list";
            errors.push(FieldError::forbidden("sendInitialEvents", why));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid_of("meta.k8s.io", "ListOptions", "", &errors))
}

/// The version that a list or a watch names.
fn version(text: &str, watch: bool) -> Result<Option<Revision>, ApiError> {
    if text.is_empty() {
        return Ok(None);
    }
    match parse_version(text) {
        Ok(version) => Ok(Some(version)),
        Err(why) if watch => Err(ApiError::unexplained(why)),
        Err(why) => Err(ApiError::bad_request(format!("invalid resource version: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubewright_kinds::Kinds;

    fn refused(query: &str, watch: bool) -> String {
        let kinds = Kinds::built_in();
        let secrets = kinds.get("", "v1", "secrets").expect("a kind");
        ListOptions::read(&Query::parse(Some(query)), secrets, watch).expect_err(query).message
    }

    /// Asked of kube-apiserver v1.36.3.
    #[test]
    fn what_cannot_be_read_is_told_as_go_tells_it() {
        for (query, told) in [
            ("limit=x", "strconv.ParseInt: parsing \"x\": invalid syntax"),
            ("limit=", "strconv.ParseInt: parsing \"\": invalid syntax"),
            (
                "limit=99999999999999999999",
                "strconv.ParseInt: parsing \"99999999999999999999\": value out of range",
            ),
            (
                "resourceVersion=abc",
                "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
            ),
            (
                "resourceVersion=99999999999999999999",
                "invalid resource version: resourceVersion: Invalid value: \"99999999999999999999\": strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
            ),
        ] {
            assert_eq!(refused(query, false), told, "{query}");
        }
        assert_eq!(
            refused("resourceVersion=-1", true),
            "resourceVersion: Invalid value: \"-1\": strconv.ParseUint: parsing \"-1\": invalid syntax"
        );
    }

    #[test]
    fn combinations_that_make_no_sense_are_all_told() {
        for (query, watch, told) in [
            (
                "resourceVersionMatch=foo",
                false,
                "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, resourceVersionMatch: Unsupported value: \"foo\": supported values: \"Exact\", \"NotOlderThan\", \"\"]",
            ),
            (
                "sendInitialEvents=true&resourceVersionMatch=Exact",
                true,
                "[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]",
            ),
            (
                "continue=abc",
                true,
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
            ),
            (
                "sendInitialEvents=x",
                false,
                "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
            ),
        ] {
            assert_eq!(
                refused(query, watch),
                format!("ListOptions.meta.k8s.io \"\" is invalid: {told}"),
                "{query}"
            );
        }
    }
}
