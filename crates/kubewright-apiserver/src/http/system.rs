//! The paths outside of the objects: health, version, discovery and OpenAPI.

use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::{Value, json};

use super::negotiate::{Shape, Wanted};
use super::respond::{self, ResponseBody};
use super::service::ApiServer;
use crate::error::ApiError;
use crate::{discovery, openapi};

pub(super) fn answer(
    server: &ApiServer,
    parts: &Parts,
    segments: &[String],
) -> Result<Response<ResponseBody>, ApiError> {
    let headers = &parts.headers;
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Err(ApiError::method_not_allowed());
    }
    let kinds = server.registry().kinds();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["healthz" | "livez" | "readyz"] | ["healthz" | "livez" | "readyz", "ping"] => {
            Ok(respond::text(StatusCode::OK, "ok"))
        }
        ["version"] => json_answer(headers, Some(version())),
        ["api"] => discovery_answer(headers, |shape| match shape {
            Shape::Discovery(version) => discovery::aggregated(&kinds, true, version.name()),
            _ => discovery::api_versions(&kinds, server.address()),
        }),
        ["apis"] => discovery_answer(headers, |shape| match shape {
            Shape::Discovery(version) => discovery::aggregated(&kinds, false, version.name()),
            _ => discovery::groups(&kinds),
        }),
        ["api", version] => json_answer(headers, discovery::resources(&kinds, "", version)),
        ["apis", group] => json_answer(headers, discovery::group(&kinds, group)),
        ["apis", group, version] => {
            let built_in = kinds.iter().any(|kind| kind.group == *group && kind.custom.is_none());
            match discovery::resources(&kinds, group, version) {
                None if built_in => Err(ApiError::no_such_resource()),
                resources => json_answer(headers, resources),
            }
        }
        ["openapi", "v3"] => Ok(plain_json(&openapi::index(&kinds))),
        ["openapi", "v3", "api", version] => document(openapi::document(&kinds, "", version)),
        ["openapi", "v3", "apis", group, version] => document(openapi::document(&kinds, group, version)),
        [] => json_answer(headers, Some(paths(&kinds))),
        _ => Err(ApiError::no_such_path()),
    }
}

fn discovery_answer(
    headers: &HeaderMap,
    make: impl FnOnce(Shape) -> Value,
) -> Result<Response<ResponseBody>, ApiError> {
    let wanted = Wanted::discovery(headers)?;
    let mut response = respond::json(StatusCode::OK, make(wanted.shape).to_string().into(), wanted.encoding);
    if let Shape::Discovery(version) = wanted.shape {
        let media_type =
            format!("application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList", version.name());
        if let Ok(value) = media_type.parse() {
            response.headers_mut().insert(http::header::CONTENT_TYPE, value);
        }
    }
    Ok(response)
}

fn json_answer(headers: &HeaderMap, value: Option<Value>) -> Result<Response<ResponseBody>, ApiError> {
    let wanted = Wanted::discovery(headers)?;
    let value = value.ok_or_else(ApiError::no_such_path)?;
    Ok(respond::json(StatusCode::OK, value.to_string().into(), wanted.encoding))
}

fn document(document: Option<Value>) -> Result<Response<ResponseBody>, ApiError> {
    let document = document.ok_or_else(ApiError::no_such_path)?;
    Ok(respond::json(StatusCode::OK, document.to_string().into(), super::negotiate::Encoding::Json))
}

/// JSON under the name of plain text, as kube-apiserver labels the index of its OpenAPI documents.
fn plain_json(value: &Value) -> Response<ResponseBody> {
    respond::text(StatusCode::OK, value.to_string())
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": concat!("v1.36.3+kubewright-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_architecture())
    })
}

/// The machine's architecture as Go calls it.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn paths(kinds: &crate::kinds::Kinds) -> Value {
    let mut paths: Vec<String> =
        ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
            .map(str::to_owned)
            .to_vec();
    for kind in kinds.iter() {
        let path = if kind.group.is_empty() {
            format!("/api/{}", kind.version)
        } else {
            format!("/apis/{}/{}", kind.group, kind.version)
        };
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    json!({"paths": paths})
}
