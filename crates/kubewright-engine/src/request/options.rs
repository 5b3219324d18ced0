//! The options of writes (`k8s.io/apimachinery/pkg/apis/meta/v1`: CreateOptions, DeleteOptions, …).

use std::sync::LazyLock;

use http::HeaderMap;
use http::header::USER_AGENT;
use kubewright_codec::negotiate::media_type;
use kubewright_codec::request::Query;
use kubewright_meta::rules::metadata;
use kubewright_meta::{ApiError, FieldError};
use kubewright_schema::{Schema, patch};
use kubewright_spec::Version;
use serde_json::Value;

use super::body::FieldValidation;
use super::type_of_body;

/// Options of a deletion, as bodies have them: the type is the same in all versions.
static DELETE_OPTIONS: LazyLock<Schema> = LazyLock::new(|| {
    Schema::of_version(Version::DEFAULT, "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")
});

/// The most bytes of the name of a manager (`FieldManagerMaxLength`).
const MANAGER_LIMIT: usize = 128;

/// How something is written.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// All is done but the commit.
    pub dry_run: bool,
    /// What becomes of fields that the kind does not have.
    pub validation: FieldValidation,
    /// Who manages the fields that are written: the option `fieldManager`, or else the name of the client's program.
    pub manager: String,
    /// The option itself, where the request has it.
    pub named_manager: Option<String>,
    /// An apply takes what others manage.
    pub force: bool,
}

impl WriteOptions {
    /// Reads them from a query; `kind` names them in errors (`CreateOptions`, `UpdateOptions`).
    ///
    /// # Errors
    /// 422 for unknown values.
    pub fn read(query: &Query, headers: &HeaderMap, kind: &str) -> Result<Self, ApiError> {
        Self::checked(query, headers, kind, Vec::new())
    }

    /// Reads those of a patch of that content type.
    ///
    /// # Errors
    /// 422 for unknown values, for `force` of a patch that is not server-side apply, and for an apply without a manager.
    pub fn of_patch(query: &Query, headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        if media_type(headers) == patch::APPLY {
            if query.text("fieldManager").is_empty() {
                errors.push(FieldError::required("fieldManager", "is required for apply patch"));
            }
        } else if query.get("force").is_some() {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        Self::checked(query, headers, "PatchOptions", errors)
    }

    fn checked(
        query: &Query,
        headers: &HeaderMap,
        kind: &str,
        mut errors: Vec<FieldError>,
    ) -> Result<Self, ApiError> {
        errors.extend(metadata::validate_field_manager(query.text("fieldManager")));
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        let validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                errors.push(FieldError::not_supported(
                    "fieldValidation",
                    other,
                    ["", "Ignore", "Strict", "Warn"],
                ));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(ApiError::invalid_of("meta.k8s.io", kind, "", &errors));
        }
        let named_manager =
            Some(query.text("fieldManager")).filter(|name| !name.is_empty()).map(str::to_owned);
        let manager = named_manager.clone().unwrap_or_else(|| program(headers));
        Ok(Self { dry_run, validation, manager, named_manager, force: query.flag("force") })
    }
}

/// The name of the client's program: what stands before the first slash of its `User-Agent`, as far as it can be printed
/// and is not too long (`k8s.io/apiserver/pkg/endpoints/handlers/create.go`, `prefixFromUserAgent`).
fn program(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()));
    let agent = agent.as_deref().unwrap_or_default();
    let mut program = String::new();
    for one in agent.split('/').next().unwrap_or_default().chars().filter(|one| !one.is_control()) {
        if program.len() + one.len_utf8() > MANAGER_LIMIT {
            break;
        }
        program.push(one);
    }
    program
}

fn dry_run<'a>(values: impl Iterator<Item = &'a str>, errors: &mut Vec<FieldError>) -> bool {
    let values: Vec<&str> = values.collect();
    if values.iter().any(|value| *value != "All") {
        errors.push(FieldError::not_supported("dryRun", Value::from(values.clone()), ["All"]));
    }
    !values.is_empty()
}

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They live on, without an owner.
    Orphan,
    /// They go afterwards.
    Background,
    /// They go first.
    Foreground,
}

/// How something is deleted.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// All is done but the commit.
    pub dry_run: bool,
    /// Seconds that the object may take to end by itself.
    pub grace_seconds: Option<i64>,
    /// What becomes of the dependents.
    pub propagation: Option<Propagation>,
    /// Whether dependents go by the word of old clients (`orphanDependents: false`), who are told whether the object is gone already.
    pub cascades: bool,
    /// The uid that the object must have.
    pub uid: Option<String>,
    /// The resource version that the object must have.
    pub resource_version: Option<String>,
    /// An object that cannot be read is deleted unread (from v1.37 on).
    pub unread: bool,
}

/// Options of a deletion as they were given, good or not.
pub(crate) struct Parsed {
    pub(crate) said: DeleteOptions,
    errors: Vec<FieldError>,
}

impl Parsed {
    /// Checks them (`ValidateDeleteOptions`).
    ///
    /// # Errors
    /// 422 for values that make no sense.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        if self.errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid_of("meta.k8s.io", "DeleteOptions", "", &self.errors))
    }
}

/// The option that deletes an object unread.
const UNREAD: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

impl DeleteOptions {
    /// Reads them from the body of a DELETE, or, where it has none, from the query.
    ///
    /// # Errors
    /// 400 for what cannot be read, 422 for values that make no sense.
    pub fn read(version: Version, query: &Query, body: Option<&Value>) -> Result<Self, ApiError> {
        let parsed = Self::parse(version, query, body)?;
        parsed.check()?;
        Ok(parsed.said)
    }

    /// As [`DeleteOptions::read`], for who checks them later.
    ///
    /// # Errors
    /// 400 for what cannot be read.
    pub(crate) fn parse(version: Version, query: &Query, body: Option<&Value>) -> Result<Parsed, ApiError> {
        let mut errors = Vec::new();
        let (mut options, policy, orphan) = match body {
            Some(body) => Self::of_body(body, &mut errors)?,
            None => Self::of_query(query, &mut errors)?,
        };
        if orphan.is_some() && !policy.is_empty() {
            errors.push(FieldError::invalid(
                "propagationPolicy",
                policy.clone(),
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        options.cascades = orphan == Some(false);
        options.propagation = match (policy.as_str(), orphan) {
            ("", None) => None,
            ("", Some(true)) | ("Orphan", _) => Some(Propagation::Orphan),
            ("", Some(false)) | ("Background", _) => Some(Propagation::Background),
            ("Foreground", _) => Some(Propagation::Foreground),
            (other, _) => {
                errors.push(FieldError::not_supported(
                    "propagationPolicy",
                    other,
                    ["Foreground", "Background", "Orphan", "nil"],
                ));
                None
            }
        };
        options.unread &= kubewright_spec::has_feature(version, "AllowUnsafeMalformedObjectDeletion");
        if options.unread {
            let others = [
                (!policy.is_empty(), "propagationPolicy"),
                (orphan.is_some(), "orphanDependents"),
                (options.grace_seconds.is_some(), "gracePeriodSeconds"),
                (options.uid.is_some() || options.resource_version.is_some(), "preconditions"),
            ];
            errors.extend(others.into_iter().filter(|(is_set, _)| *is_set).map(|(_, other)| {
                FieldError::invalid(UNREAD, true, format!("cannot be set together with .{other}"))
            }));
        }
        Ok(Parsed { said: options, errors })
    }

    /// Checks them as those of a deletion of many.
    ///
    /// # Errors
    /// 422 for what is not allowed there.
    pub fn check_of_many(&self) -> Result<(), ApiError> {
        if !self.unread {
            return Ok(());
        }
        let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
        let error = FieldError::invalid(UNREAD, true, why);
        Err(ApiError::invalid_of("meta.k8s.io", "DeleteOptions", "", &[error]))
    }

    fn of_query(
        query: &Query,
        errors: &mut Vec<FieldError>,
    ) -> Result<(Self, String, Option<bool>), ApiError> {
        let options = Self {
            dry_run: dry_run(query.all("dryRun"), errors),
            grace_seconds: query.number("gracePeriodSeconds")?,
            unread: query.get(UNREAD).is_some() && query.flag(UNREAD),
            uid: query.get("uid").filter(|uid| !uid.is_empty()).map(str::to_owned),
            resource_version: query
                .get("resourceVersion")
                .filter(|version| !version.is_empty())
                .map(str::to_owned),
            ..Self::default()
        };
        let orphan = query.get("orphanDependents").map(|_| query.flag("orphanDependents"));
        Ok((options, query.text("propagationPolicy").to_owned(), orphan))
    }

    fn of_body(body: &Value, errors: &mut Vec<FieldError>) -> Result<(Self, String, Option<bool>), ApiError> {
        if let Some(why) = type_of_body::of_options(body) {
            return Err(ApiError::bad_request(why));
        }
        let mut body = body.clone();
        if !body.is_null() {
            DELETE_OPTIONS.decode(&mut body).map_err(ApiError::bad_request)?;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let dry_runs = body["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let preconditions = &body["preconditions"];
        let options = Self {
            dry_run: dry_run(dry_runs, errors),
            grace_seconds: body["gracePeriodSeconds"].as_i64(),
            propagation: None,
            cascades: false,
            unread: body[UNREAD] == true,
            uid: text(&preconditions["uid"]),
            resource_version: text(&preconditions["resourceVersion"]),
        };
        let policy = text(&body["propagationPolicy"]).unwrap_or_default();
        Ok((options, policy, body["orphanDependents"].as_bool()))
    }
}
