//! Request info: who makes a request, and what it asks for, for faults and the log (`RequestInfo` of `k8s.io/apiserver`).

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use kubewright_codec::request::{Path, Query};
use serde::Serialize;

/// The most bytes of a text that are kept, so that what a client sends does not fill the memory. Names have at most 253.
const LONGEST: usize = 256;

/// Request info: who makes a request, and what it asks for. What it does not have is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestInfo {
    /// The user who acts; where somebody acts as another, that one. Empty for credentials that are not good.
    pub user: String,
    /// The header `User-Agent`.
    pub user_agent: String,
    /// What it does, in the words of RBAC.
    pub verb: &'static str,
    /// API group; empty for core.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Plural of the resource; empty for what is no request for objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// Subresource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// Namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The object that the URL names; what is created has no name there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Of a patch its kind: `json`, `merge`, `strategic` or `apply`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub patch: &'static str,
    /// The path of a request that is not for objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
}

impl RequestInfo {
    /// What the head of a request says; `user` is who shows its credentials.
    pub(crate) fn of(parts: &Parts, user: &str) -> Self {
        let header = |name| parts.headers.get(name).map_or("", |value| value.to_str().unwrap_or_default());
        let user = match header(http::header::HeaderName::from_static("impersonate-user")) {
            "" => user,
            other => other,
        };
        let user_agent = short(header(USER_AGENT));
        let user = short(user);
        match Path::parse(parts.uri.path()) {
            Path::Resource(target) => Self {
                user,
                user_agent,
                verb: target.verb(&parts.method, &Query::parse(parts.uri.query())),
                group: short(&target.group),
                version: short(&target.version),
                resource: short(&target.resource),
                subresource: short(&target.subresource),
                namespace: short(&target.namespace),
                name: short(&target.name),
                patch: patch(&parts.method, header(CONTENT_TYPE)),
                path: String::new(),
            },
            Path::Other(_) => Self {
                user,
                user_agent,
                verb: method(&parts.method),
                path: short(parts.uri.path()),
                ..Self::default()
            },
        }
    }

    /// Whether it is for objects, and not for discovery, health and the like.
    #[must_use]
    pub fn is_for_objects(&self) -> bool {
        !self.resource.is_empty()
    }
}

/// What a request for something else than objects does: its method.
fn method(method: &http::Method) -> &'static str {
    match *method {
        http::Method::GET => "get",
        http::Method::HEAD => "head",
        http::Method::POST => "post",
        http::Method::PUT => "put",
        http::Method::PATCH => "patch",
        http::Method::DELETE => "delete",
        http::Method::OPTIONS => "options",
        _ => "",
    }
}

/// The kind of a patch, by its media type.
fn patch(method: &http::Method, content_type: &str) -> &'static str {
    if method != http::Method::PATCH {
        return "";
    }
    match content_type.split(';').next().unwrap_or_default().trim() {
        "application/json-patch+json" => "json",
        "application/merge-patch+json" => "merge",
        "application/strategic-merge-patch+json" => "strategic",
        "application/apply-patch+yaml" | "application/apply-patch+cbor" => "apply",
        _ => "",
    }
}

fn short(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST)].to_owned()
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn info(request: http::request::Builder) -> RequestInfo {
        RequestInfo::of(&request.body(()).expect("a request").into_parts().0, "alice")
    }

    #[test]
    fn a_request_says_who_does_what_to_what() {
        let info = info(
            Request::patch("/apis/apps/v1/namespaces/prod/deployments/web/scale")
                .header("user-agent", "manager/v1")
                .header("content-type", "application/merge-patch+json; charset=utf-8"),
        );
        assert_eq!(
            info,
            RequestInfo {
                user: "alice".into(),
                user_agent: "manager/v1".into(),
                verb: "patch",
                group: "apps".into(),
                version: "v1".into(),
                resource: "deployments".into(),
                subresource: "scale".into(),
                namespace: "prod".into(),
                name: "web".into(),
                patch: "merge",
                path: String::new(),
            }
        );
    }

    #[test]
    fn a_watch_is_told_from_a_list_and_discovery_from_both() {
        assert_eq!(info(Request::get("/api/v1/pods?watch=1")).verb, "watch");
        assert_eq!(info(Request::get("/api/v1/pods")).verb, "list");
        let discovery = info(Request::get("/apis/apps/v1"));
        assert_eq!((discovery.verb, &*discovery.path), ("get", "/apis/apps/v1"));
        assert!(!discovery.is_for_objects());
    }

    #[test]
    fn who_acts_as_somebody_is_that_one() {
        assert_eq!(info(Request::get("/api/v1/pods").header("impersonate-user", "bob")).user, "bob");
    }

    #[test]
    fn a_text_without_end_is_cut() {
        let info = info(Request::get("/api/v1/pods").header("user-agent", "x".repeat(10_000)));
        assert_eq!(info.user_agent.len(), LONGEST);
    }
}
