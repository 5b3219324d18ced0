//! What goes wrong, as `metav1.Status` tells it: codes, reasons and words of
//! `k8s.io/apimachinery/pkg/api/errors`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::field::FieldError;

/// The names of a type of objects: what errors tell of it.
pub trait TypeNames {
    /// API group; empty for core.
    fn group(&self) -> &str;
    /// API version within the group.
    fn version(&self) -> &str;
    /// CamelCase name, as in `kind:`.
    fn kind(&self) -> &str;
    /// Lower-case plural, as in URLs.
    fn plural(&self) -> &str;
    /// The group that its objects belong to at heart: that of the version they are stored in. Messages of validation name
    /// it.
    fn own_group(&self) -> &str;

    /// `group/version`, or the version alone for core.
    fn api_version(&self) -> String {
        match self.group() {
            "" => self.version().to_owned(),
            group => format!("{group}/{}", self.version()),
        }
    }
}

impl<T: TypeNames + ?Sized> TypeNames for Arc<T> {
    fn group(&self) -> &str {
        (**self).group()
    }

    fn version(&self) -> &str {
        (**self).version()
    }

    fn kind(&self) -> &str {
        (**self).kind()
    }

    fn plural(&self) -> &str {
        (**self).plural()
    }

    fn own_group(&self) -> &str {
        (**self).own_group()
    }
}

/// An answer that is not a success.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// HTTP status.
    pub code: StatusCode,
    /// Machine-readable reason, such as `NotFound`; empty where Kubernetes gives none.
    pub reason: Cow<'static, str>,
    /// What a person reads.
    pub message: String,
    /// The `details` of the Status, when there are any.
    pub details: Option<Value>,
    /// Answered as plain text (`404 page not found`) and not as a Status.
    pub plain: bool,
    /// What few errors have.
    more: Option<Box<More>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct More {
    continue_token: Option<String>,
    warnings: Vec<String>,
}

impl ApiError {
    /// An error with these parts and no details.
    pub fn new(code: StatusCode, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: None, plain: false, more: None }
    }

    /// With these details.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// With these texts for `Warning` headers, before those that it has: what was noticed before the request failed.
    #[must_use]
    pub fn with_warnings(mut self, mut warnings: Vec<String>) -> Self {
        if !warnings.is_empty() {
            let more = self.more.get_or_insert_default();
            warnings.append(&mut more.warnings);
            more.warnings = warnings;
        }
        self
    }

    /// Texts for `Warning` headers.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        self.more.as_ref().map_or(&[], |more| &more.warnings)
    }

    /// With this `metadata.continue` in the Status: where a list may go on nevertheless.
    #[must_use]
    pub fn with_continue(mut self, token: String) -> Self {
        self.more.get_or_insert_default().continue_token = Some(token);
        self
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 401.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// 403 on an object (or, with an empty name, on a resource).
    #[must_use]
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message = match (resource, name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{} is forbidden: {why}", qualified(resource, group)),
            _ => format!("{} {name:?} is forbidden: {why}", qualified(resource, group)),
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with_details(details(name, group, resource))
    }

    /// 404 for an object.
    #[must_use]
    pub fn not_found(kind: &impl TypeNames, name: &str) -> Self {
        Self::not_found_in(kind.group(), kind.plural(), name)
    }

    /// 404 for an object of a resource.
    #[must_use]
    pub fn not_found_in(group: &str, resource: &str, name: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            format!("{} {name:?} not found", qualified(resource, group)),
        )
        .with_details(details(name, group, resource))
    }

    /// 404 for a resource that a served group does not have.
    #[must_use]
    pub fn no_such_resource() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
            .with_details(json!({}))
    }

    /// 404 in plain text for a path that nobody serves.
    #[must_use]
    pub fn no_such_path() -> Self {
        Self { plain: true, ..Self::new(StatusCode::NOT_FOUND, "NotFound", "404 page not found\n") }
    }

    /// 405 for a verb that the resource does not have.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_details(json!({}))
    }

    /// 406: none of the types that the client accepts can be made.
    #[must_use]
    pub fn not_acceptable(offered: &str) -> Self {
        Self::new(
            StatusCode::NOT_ACCEPTABLE,
            "NotAcceptable",
            format!("only the following media types are accepted: {offered}"),
        )
    }

    /// 409: an object of that name is there.
    #[must_use]
    pub fn already_exists(kind: &impl TypeNames, name: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "AlreadyExists",
            format!("{} {name:?} already exists", qualified(kind.plural(), kind.group())),
        )
        .with_details(details(name, kind.group(), kind.plural()))
    }

    /// The same, of a name that the server was asked to choose; it says so of one that was given beside `generateName`, too. The group is the
    /// one that its objects are stored in (`k8s.io/apiserver/pkg/registry/rest/create.go`, `CheckGeneratedNameError`).
    #[must_use]
    pub fn generated_name_exists(kind: &impl TypeNames, name: &str) -> Self {
        let (group, plural) = (kind.own_group(), kind.plural());
        let mut details = details(name, group, plural);
        details["retryAfterSeconds"] = 1.into();
        let what = qualified(plural, group);
        Self::new(
            StatusCode::CONFLICT,
            "AlreadyExists",
            format!(
                "{what} {name:?} already exists, the server was not able to generate a unique name for the object"
            ),
        )
        .with_details(details)
    }

    /// 409: the object has changed, or a precondition does not hold.
    #[must_use]
    pub fn conflict(kind: &impl TypeNames, name: &str, why: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "Conflict",
            format!(
                "Operation cannot be fulfilled on {} {name:?}: {why}",
                qualified(kind.plural(), kind.group())
            ),
        )
        .with_details(details(name, kind.group(), kind.plural()))
    }

    /// As [`Self::conflict`], told of the kind instead of its resource: a precondition of a deletion.
    #[must_use]
    pub fn conflict_on_kind(kind: &str, group: &str, name: &str, why: &str) -> Self {
        let qualified = qualified(kind, group);
        Self::new(
            StatusCode::CONFLICT,
            "Conflict",
            format!("Operation cannot be fulfilled on {qualified} {name:?}: {why}"),
        )
        .with_details(details(name, group, kind))
    }

    /// 405 for a verb that a custom resource does not have.
    #[must_use]
    pub fn verb_not_supported(kind: &impl TypeNames, verb: &str) -> Self {
        let resource = qualified(kind.plural(), kind.group());
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            format!("{verb} is not supported on resources of kind {resource:?}"),
        )
        .with_details(details("", kind.group(), kind.plural()))
    }

    /// 410: the resource version is older than what is kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 413: the body is over the limit.
    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {limit}"),
        )
    }

    /// 415: the body is of a type that is not understood.
    #[must_use]
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    /// 422: the object breaks rules.
    #[must_use]
    pub fn invalid(kind: &impl TypeNames, name: &str, errors: &[FieldError]) -> Self {
        Self::invalid_of(kind.own_group(), kind.kind(), name, errors)
    }

    /// 422 for an object of a group and kind.
    #[must_use]
    pub fn invalid_of(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let causes: Vec<Value> = errors
            .iter()
            .map(|error| json!({"reason": error.reason(), "message": error.body(), "field": error.field}))
            .collect();
        let mut told = BTreeSet::new();
        let parts: Vec<String> =
            errors.iter().map(ToString::to_string).filter(|part| told.insert(part.clone())).collect();
        let list = match parts.as_slice() {
            [] => "<nil>".to_owned(),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut all = details(name, group, kind);
        if !causes.is_empty() {
            all["causes"] = Value::Array(causes);
        }
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            format!("{} {name:?} is invalid: {list}", qualified(kind, group)),
        )
        .with_details(all)
    }

    /// 500 with a reason.
    #[must_use]
    pub fn internal(why: &str) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {why}"),
        )
        .with_details(json!({"causes": [{"message": why}]}))
    }

    /// 500 without a reason: an error of Kubernetes' own that it does not translate.
    pub fn unexplained(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// The `metav1.Status`.
    #[must_use]
    pub fn to_status(&self) -> Value {
        let mut status = Map::new();
        status.insert("kind".into(), "Status".into());
        status.insert("apiVersion".into(), "v1".into());
        let token = self.more.as_ref().and_then(|more| more.continue_token.as_ref());
        let metadata = token.map_or(json!({}), |token| json!({"continue": token}));
        status.insert("metadata".into(), metadata);
        status.insert("status".into(), "Failure".into());
        status.insert("message".into(), self.message.clone().into());
        if !self.reason.is_empty() {
            status.insert("reason".into(), self.reason.as_ref().into());
        }
        if let Some(details) = &self.details {
            status.insert("details".into(), details.clone());
        }
        status.insert("code".into(), self.code.as_u16().into());
        Value::Object(status)
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

fn details(name: &str, group: &str, kind: &str) -> Value {
    let mut details = Map::new();
    for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
        if !value.is_empty() {
            details.insert(key.into(), value.into());
        }
    }
    Value::Object(details)
}
