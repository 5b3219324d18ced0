//! The paths outside of the objects: health, version, metrics, discovery and OpenAPI.
//!
//! Discovery of groups and versions is answered by a router, which knows the method GET alone; what else stands here
//! answers any method, as kube-apiserver's plain handlers do.

mod documents;
mod health;
mod metrics;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, VARY};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use kubewright_codec::negotiate::{Encoding, MediaTypeOptions, Offer, Shape};
use kubewright_codec::request::Query;
use kubewright_engine::ApiServices;
use kubewright_kinds::Kinds;
use kubewright_kinds::rules::api_services::ApiService;
use kubewright_meta::ApiError;
use kubewright_spec::Version;
use kubewright_views::discovery;
use serde_json::{Value, json};

pub(super) use documents::Documents;
pub(super) use metrics::Metrics;

use super::respond;
use super::response_body::ResponseBody;
use super::service::ApiServer;

/// One request for a path outside of the objects.
pub(super) struct SystemRequest<'a> {
    pub(super) server: &'a ApiServer,
    pub(super) parts: &'a Parts,
    pub(super) query: &'a Query,
}

pub(super) fn answer(
    server: &ApiServer,
    parts: &Parts,
    query: &Query,
    segments: &[String],
) -> Result<Response<ResponseBody>, ApiError> {
    let request = SystemRequest { server, parts, query };
    let all: Vec<&str> = segments.iter().map(String::as_str).collect();
    let kinds = server.engine().kinds();
    match all.as_slice() {
        [] | ["index.html"] => Ok(request.plain_pretty(&paths(
            &kinds,
            request.api_services().all(),
            request.configuration().is_some(),
        ))),
        ["healthz", check @ ..] if check != [""] => {
            health::answer(server, "healthz", &check.join("/"), query)
        }
        ["livez", check @ ..] if check != [""] => health::answer(server, "livez", &check.join("/"), query),
        ["readyz", check @ ..] if check != [""] => health::answer(server, "readyz", &check.join("/"), query),
        ["metrics", "slis"] if parts.method == Method::DELETE => {
            server.metrics().forget_checks();
            Ok(respond::text(StatusCode::OK, "metrics reset\n"))
        }
        ["metrics", "slis"] => Ok(metrics::response(server.metrics().slis())),
        ["metrics"] => Ok(metrics::response(metrics::text(server))),
        ["openapi", "v2"] => Ok(documents::openapi_v2(&request, &kinds)),
        ["openapi", "v3", document @ ..] => Ok(documents::openapi_v3(&request, &kinds, document)),
        ["version"] | ["version", ""] => {
            request.routed()?;
            MediaTypeOptions::of(&parts.headers, query, Offer::JsonAlone)?;
            Ok(request.plain_pretty(&version(kinds.version())))
        }
        [".well-known", "openid-configuration"] | ["openid", "v1", "jwks"] => {
            request.issuer(all[0] == "openid")
        }
        ["api"] | ["api", ""] => {
            request.routed()?;
            request.discovery(&kinds, true)
        }
        ["apis"] | ["apis", ""] => request.discovery(&kinds, false),
        ["api" | "apis", ..] => request.part_of_discovery(&kinds, &all),
        _ => Err(ApiError::no_such_path()),
    }
}

impl SystemRequest<'_> {
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Refuses what the router has no route for.
    fn routed(&self) -> Result<(), ApiError> {
        if self.parts.method == Method::GET { Ok(()) } else { Err(ApiError::method_not_allowed()) }
    }

    /// Who issues the tokens of service accounts, and with which keys, for those who verify tokens elsewhere
    /// (`k8s.io/kubernetes/pkg/routes/openidmetadata.go`).
    fn issuer(&self, keys: bool) -> Result<Response<ResponseBody>, ApiError> {
        let configuration = self.configuration().ok_or_else(ApiError::no_such_path)?;
        self.routed()?;
        let (document, media_type) = match keys {
            true => (self.server.authenticator().service_accounts().key_set(), "application/jwk-set+json"),
            false => (configuration, "application/json"),
        };
        let mut response = respond::text(StatusCode::OK, document);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
        Ok(response)
    }

    fn configuration(&self) -> Option<String> {
        self.server.authenticator().service_accounts().configuration(self.server.address())
    }

    /// JSON for people, as Go's `json.MarshalIndent` writes it.
    fn plain_pretty(&self, value: &Value) -> Response<ResponseBody> {
        respond::value(StatusCode::OK, value, Encoding::PrettyJson)
    }

    fn api_services(&self) -> std::sync::Arc<ApiServices> {
        let engine = self.server.engine();
        engine.api_services(&engine.snapshot())
    }

    /// `/api` and `/apis`: the groups, or all there is.
    fn discovery(
        &self,
        kinds: &std::sync::Arc<Kinds>,
        core: bool,
    ) -> Result<Response<ResponseBody>, ApiError> {
        // Without the feature the clauses that ask for it are skipped, as all that cannot be had.
        let offer = match (core, self.server.settings().aggregated_discovery) {
            (true, true) => Offer::Discovery,
            (true, false) => Offer::PlainDiscovery,
            (false, true) => Offer::Groups,
            (false, false) => Offer::PlainGroups,
        };
        let wanted = MediaTypeOptions::of(self.headers(), self.query, offer)?;
        let mut response = match wanted.shape {
            Shape::Discovery(version) => {
                let published = self.server.aggregation().known.published();
                let document = self.server.documents().aggregated(kinds, &published, core, version);
                let mut response = match self.has(&document.tag) {
                    true => respond::text(StatusCode::NOT_MODIFIED, ""),
                    false => respond::json(StatusCode::OK, document.bytes.clone(), wanted.encoding),
                };
                let made = response.status() == StatusCode::OK;
                let headers = response.headers_mut();
                if made {
                    let media_type = format!(
                        "{};g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList",
                        wanted.encoding.media_type(),
                        version.name()
                    );
                    headers.insert(CONTENT_TYPE, media_type.parse().unwrap_or(HeaderValue::from_static("")));
                } else {
                    headers.remove(CONTENT_TYPE);
                }
                headers.insert(ETAG, document.tag);
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
                response
            }
            _ if core => {
                let versions = discovery::api_versions(kinds, self.server.address());
                respond::value(StatusCode::OK, &versions, wanted.encoding)
            }
            _ => {
                let services = self.api_services();
                respond::value(StatusCode::OK, &discovery::groups(kinds, services.all()), wanted.encoding)
            }
        };
        response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
        Ok(response)
    }

    /// Whether the client has the document of this tag (`If-None-Match`).
    pub(super) fn has(&self, tag: &HeaderValue) -> bool {
        let known = self.headers().get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        known.flat_map(|value| value.split(',')).any(|one| one.trim().as_bytes() == tag.as_bytes())
    }

    /// What stands below `/api` and `/apis`: one group, one version.
    fn part_of_discovery(
        &self,
        kinds: &Kinds,
        segments: &[&str],
    ) -> Result<Response<ResponseBody>, ApiError> {
        let named = match segments.split_last() {
            Some((&"", others)) => others,
            _ => segments,
        };
        let (group, built_in) = match named {
            ["api", ..] => ("", true),
            ["apis", group, ..] => (*group, kinds.has_built_in_group(group)),
            _ => return Err(ApiError::no_such_path()),
        };
        let document = match named {
            ["api", version] => discovery::resources(kinds, "", version),
            ["apis", group] => discovery::group(kinds, self.api_services().all(), group),
            ["apis", group, version] => discovery::resources(kinds, group, version),
            _ => None,
        };
        match document {
            None if built_in => Err(ApiError::no_such_resource()),
            None => Err(ApiError::no_such_path()),
            Some(document) => {
                // A group as a whole, and what is custom, is told by handlers without a router.
                let of_group = matches!(named, ["apis", _]);
                if built_in && !of_group {
                    self.routed()?;
                }
                let offer = match (of_group, built_in) {
                    (true, _) => Offer::PlainGroups,
                    (false, true) => Offer::PlainDiscovery,
                    (false, false) => Offer::Custom,
                };
                debug_assert!(group.is_empty() || named.len() > 1, "a group was named");
                let wanted = MediaTypeOptions::of(self.headers(), self.query, offer)?;
                Ok(respond::value(StatusCode::OK, &document, wanted.encoding))
            }
        }
    }
}

/// `/version` (`k8s.io/apimachinery/pkg/version`): what is compatible with which version of Kubernetes. Its git commit and
/// date are nobody's: no build of Kubernetes answers here.
fn version(served: Version) -> Value {
    let minor = served.minor().to_string();
    json!({
        "major": "1",
        "minor": minor,
        "emulationMajor": "1",
        "emulationMinor": minor,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": (served.minor() - 1).to_string(),
        "gitVersion": format!("v{}+kubewright-{}", served.release(), env!("CARGO_PKG_VERSION")),
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

/// `/`: the paths that are there (`k8s.io/apiserver/pkg/server/routes/index.go`).
fn paths(kinds: &Kinds, services: &[ApiService], tells_issuer: bool) -> Value {
    let mut paths: Vec<String> = [
        "/api",
        "/apis",
        "/apis/",
        "/healthz",
        "/livez",
        "/metrics",
        "/metrics/slis",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    if tells_issuer {
        paths.extend(["/.well-known/openid-configuration", "/openid/v1/jwks"].map(str::to_owned));
    }
    for of in ["healthz", "livez", "readyz"] {
        paths.extend(health::checks(of).map(|check| format!("/{of}/{check}")));
    }
    for one in services.iter().filter(|one| !one.group.is_empty()) {
        paths.push(format!("/apis/{}", one.group));
        paths.push(format!("/apis/{}/{}", one.group, one.version));
    }
    for kind in kinds.iter() {
        if kind.group.is_empty() {
            paths.push(format!("/api/{}", kind.version));
        } else {
            paths.push(format!("/apis/{}", kind.group));
            paths.push(format!("/apis/{}/{}", kind.group, kind.version));
        }
    }
    paths.sort();
    paths.dedup();
    json!({"paths": paths})
}
