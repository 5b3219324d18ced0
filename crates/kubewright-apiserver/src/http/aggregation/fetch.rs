//! What an API server says of what it serves: discovery and OpenAPI, asked for by this server itself
//! (`k8s.io/kube-aggregator/pkg/apiserver/handler_discovery.go`, `pkg/controllers/openapi*`).

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kubewright_identity::authn::{SYSTEM_MASTERS, User};
use kubewright_identity::webhook::UpstreamBody;
use kubewright_kinds::rules::api_services::{ApiService, Backend};
use kubewright_spec::Version;
use kubewright_views::{discovery, openapi};
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::super::service::ApiServer;
use super::known::Said;
use super::pass;

/// The largest document.
const MAX_DOCUMENT: usize = 64 << 20;
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);
const OPENAPI_TIMEOUT: Duration = Duration::from_secs(60);

/// Who asks for discovery in one document.
static AGGREGATOR: LazyLock<User> = LazyLock::new(|| User::new("system:kube-aggregator", [SYSTEM_MASTERS]));
/// Who asks for that of one version.
static PLAIN_AGGREGATOR: LazyLock<User> = LazyLock::new(|| User::new("system:kube-aggregator", [""; 0]));
/// Who asks for OpenAPI.
static OPENAPI_AGGREGATOR: LazyLock<User> = LazyLock::new(|| User::new("system:aggregator", [""; 0]));

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// Asked for as well before v1.37.
const AGGREGATED_BETA: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// An answer, read to its end.
struct Answer {
    code: StatusCode,
    headers: HeaderMap,
    bytes: Bytes,
}

/// What is asked of one API server.
pub(super) struct Fetch<'a> {
    pub(super) server: &'a ApiServer,
    pub(super) service: &'a ApiService,
    pub(super) backend: &'a Backend,
}

impl Fetch<'_> {
    /// The resources of the version: by the discovery of all that the API server serves, else by that of the version.
    ///
    /// # Errors
    /// Why they are not known.
    pub(super) async fn resources(&self) -> Result<Option<Value>, String> {
        let (group, version) = (&*self.service.group, &*self.service.version);
        let kubernetes = self.server.engine().kinds().version();
        let accept = match kubernetes < Version::V1_37 {
            true => format!("{AGGREGATED},{AGGREGATED_BETA}"),
            false => AGGREGATED.to_owned(),
        };
        let answer = self.get(request("/apis", &AGGREGATOR, &accept, ""), DISCOVERY_TIMEOUT).await;
        let answer = answer.map_err(|why| {
            tracing::debug!(%why, "an API server gives no discovery");
            self.unavailable()
        })?;
        if answer.code == StatusCode::SERVICE_UNAVAILABLE {
            return Err(self.unavailable());
        }
        if answer.code == StatusCode::OK && answer.is_aggregated(kubernetes) {
            return discovery::resources_of_aggregated(&answer.json()?, group, version);
        }
        let path = match group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        let plain = request(&path, &PLAIN_AGGREGATOR, "application/json", "");
        let answer = self.get(plain, DISCOVERY_TIMEOUT).await?;
        if answer.code != StatusCode::OK {
            return Err(format!("failed to download legacy discovery for {path}: {}", answer.code));
        }
        discovery::resources_of_plain(&answer.json()?).map(Some)
    }

    /// What OpenAPI says, v3 and v2. What is as it was stays so.
    ///
    /// # Errors
    /// Why it is not known.
    pub(super) async fn openapi(&self, said: &mut Said) -> Result<(), String> {
        let request_of = |path: &str, tag: &str| request(path, &OPENAPI_AGGREGATOR, "application/json", tag);
        let index = self.get(request_of("/openapi/v3", ""), OPENAPI_TIMEOUT).await?;
        said.index = match index.code {
            StatusCode::OK => index.json()?["paths"].as_object().cloned().unwrap_or_default(),
            StatusCode::NOT_FOUND => Default::default(),
            _ => return Err("Error, could not get list of group versions for APIService".to_owned()),
        };
        let whole = self.get(request_of("/openapi/v2", &said.swagger_tag), OPENAPI_TIMEOUT).await?;
        match whole.code {
            StatusCode::NOT_MODIFIED => {}
            StatusCode::OK => {
                let tag = whole.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
                let tag = tag.map_or_else(|| whole.own_tag(), str::to_owned);
                if tag != said.swagger_tag {
                    let prefix = format!("/apis/{}/{}/", self.service.group, self.service.version);
                    said.swagger = Some(openapi::part_of_swagger(&whole.json()?, &prefix));
                    said.swagger_tag = tag;
                }
            }
            StatusCode::NOT_FOUND => {
                said.swagger = None;
                said.swagger_tag.clear();
            }
            code => return Err(format!("failed to retrieve openAPI spec, http error: {code}")),
        }
        Ok(())
    }

    fn unavailable(&self) -> String {
        let Backend { namespace, service, port, .. } = self.backend;
        format!("service {namespace}/{service}:{port} returned non-success response code: 503")
    }

    async fn get(&self, request: Request<UpstreamBody>, longest: Duration) -> Result<Answer, String> {
        let aggregation = self.server.aggregation();
        let upstream = aggregation.upstream(self.backend, self.backend.insecure);
        let engine = self.server.engine();
        let route = aggregation.upstreams.route(&upstream, &engine.snapshot())?;
        let answering = async {
            let response = aggregation.upstreams.send(&upstream, &route, request).await?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, MAX_DOCUMENT).collect().await.map_err(|error| error.to_string())?;
            Ok(Answer { code: parts.status, headers: parts.headers, bytes: body.to_bytes() })
        };
        let answered = engine.world().clock.wait_outside(longest, answering).await;
        answered.unwrap_or_else(|_| Err("request timed out".to_owned()))
    }
}

impl Answer {
    fn json(&self) -> Result<Value, String> {
        serde_json::from_slice(&self.bytes).map_err(|error| error.to_string())
    }

    /// Whether it tells of all groups and their resources.
    fn is_aggregated(&self, kubernetes: Version) -> bool {
        let given = self.headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
        let mut parameters = given.split(';').skip(1).filter_map(|one| one.trim().split_once('='));
        let is = |name: &str, values: &[&str]| {
            parameters.clone().any(|(found, value)| found == name && values.contains(&value))
        };
        let versions: &[&str] = if kubernetes < Version::V1_37 { &["v2", "v2beta1"] } else { &["v2"] };
        let known = is("g", &["apidiscovery.k8s.io"]) && is("as", &["APIGroupDiscoveryList"]);
        let known = known && is("v", versions);
        known && parameters.next().is_some()
    }

    /// A tag for a document whose server gives none.
    fn own_tag(&self) -> String {
        digest(&SHA256, &self.bytes).as_ref().iter().map(|byte| format!("{byte:02X}")).collect()
    }
}

fn request(path: &str, user: &User, accept: &str, tag: &str) -> Request<UpstreamBody> {
    let mut request = pass::get(path, user);
    let headers = request.headers_mut();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(ACCEPT, accept);
    if tag.starts_with('"') {
        set(IF_NONE_MATCH, tag);
    }
    request
}
