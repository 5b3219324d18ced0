//! The paths under `/kubewright`: an [`Admin`](super::Admin) over HTTP.
//!
//! They are there for who comes from this machine (the address of the peer, not what a header says), and may use them
//! under the authorization of the cluster: `system:masters`, or who has a role for the non-resource URL `/kubewright/*`.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use kubewright_apiserver::http::listener::RemoteAddress;
use kubewright_meta::ApiError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::Body;
use super::matching::Match;
use super::rule::Rule;
use super::service::{AdminService, RequestBody};
use super::{Admin, AdvanceError, duration, refusal};

/// Where the paths begin.
const ROOT: &str = "/kubewright";
/// The largest body of a request.
const LARGEST: usize = 64 << 10;
/// How many requests of the log are told in full, unless more are asked for.
const TOLD: usize = 1000;

/// What there is: method, path, what it does, an example of a body or a query.
const ENDPOINTS: [(&str, &str, &str, &str); 11] = [
    ("GET", "/kubewright", "tells what there is", ""),
    ("GET", "/kubewright/clock", "tells cluster time", ""),
    (
        "POST",
        "/kubewright/clock/advance",
        "lets cluster time pass, with all that falls due in it",
        r#"{"by":"1h30m"}"#,
    ),
    (
        "POST",
        "/kubewright/reset",
        "makes the cluster as it was when it started: objects, faults and the log; not time",
        "",
    ),
    (
        "GET",
        "/kubewright/requests",
        "tells who called what, counted and in full",
        "?userAgent=manager&verbs=update,patch&group=apps&resource=deployments&subresource=status&namespace=default&name=web&user=system:admin&limit=10",
    ),
    ("DELETE", "/kubewright/requests", "empties the log of requests", ""),
    (
        "GET",
        "/kubewright/reconciles",
        "tells what operators on Kubewright's SDK have told of their queues and latest reconciles",
        "",
    ),
    (
        "POST",
        "/kubewright/faults",
        "makes requests or watches fail",
        r#"{"match":{"verbs":["update","patch"],"group":"apps","resource":"deployments"},"fault":"conflict","times":2}"#,
    ),
    (
        "GET",
        "/kubewright/faults",
        "lists the faults, and how often each has struck; with /{id}, one of them",
        "",
    ),
    ("DELETE", "/kubewright/faults", "removes all faults", ""),
    ("DELETE", "/kubewright/faults/{id}", "removes a fault, and lets go what it holds", ""),
];

/// Whether a request is for these paths, and from this machine or this process.
pub(super) fn is_own<B>(request: &Request<B>) -> bool {
    let rest = request.uri().path().strip_prefix(ROOT);
    let remote = request.extensions().get::<RemoteAddress>();
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        && remote.is_none_or(|remote| remote.0.ip().to_canonical().is_loopback())
}

/// Answers a request for these paths.
pub(super) async fn answer<B: RequestBody>(service: &AdminService, request: Request<B>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    // The server itself has no such path: 404 is what it says to who may ask, once it knows who asks.
    let mut server = service.server.clone();
    let question = Request::from_parts(parts.clone(), Empty::<Bytes>::new());
    let may = tower::Service::call(&mut server, question).await.unwrap_or_else(|never| match never {});
    if may.status() != StatusCode::NOT_FOUND {
        return may.map(Body::from);
    }
    let answered = match Limited::new(Box::pin(body), LARGEST).collect().await {
        Ok(body) => handle(service, &parts, &body.to_bytes()).await,
        Err(_) => Err(ApiError::too_large(LARGEST)),
    };
    match answered {
        Ok(value) => {
            let text = serde_json::to_vec_pretty(&value).unwrap_or_default();
            refusal::respond(StatusCode::OK, "application/json", text.into())
        }
        Err(error) => refusal::status(&error),
    }
}

async fn handle(service: &AdminService, parts: &Parts, body: &[u8]) -> Result<Value, ApiError> {
    let admin = &service.admin;
    let path = parts.uri.path().strip_prefix(ROOT).unwrap_or_default();
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match (&parts.method, segments.as_slice()) {
        (&Method::GET, []) => Ok(index()),
        (&Method::GET, ["clock"]) => Ok(clock(admin)),
        (&Method::POST, ["clock", "advance"]) => advance(admin, body).await,
        (&Method::POST, ["reset"]) => {
            admin.reset().await?;
            Ok(json!({}))
        }
        (&Method::GET, ["requests"]) => requests(admin, parts.uri.query().unwrap_or_default()),
        (&Method::DELETE, ["requests"]) => {
            admin.forget_requests();
            Ok(json!({}))
        }
        (&Method::GET, ["reconciles"]) => Ok(admin.show_reconciles()),
        (&Method::GET, ["faults"]) => Ok(admin.show_faults()),
        (&Method::POST, ["faults"]) => {
            let id = admin.inject(Rule::read(body).map_err(ApiError::bad_request)?);
            Ok(admin.show_fault(id).unwrap_or_default())
        }
        (&Method::DELETE, ["faults"]) => {
            admin.remove_faults();
            Ok(json!({}))
        }
        (&Method::GET, ["faults", id]) => admin.show_fault(number(id)?).ok_or_else(|| no_fault(id)),
        (&Method::DELETE, ["faults", id]) => match admin.remove_fault(number(id)?) {
            true => Ok(json!({})),
            false => Err(no_fault(id)),
        },
        (_, segments) => Err(unknown(segments)),
    }
}

fn index() -> Value {
    let endpoints = ENDPOINTS.iter().map(|(method, path, does, example)| {
        json!({"method": method, "path": path, "does": does, "example": example})
    });
    json!({"endpoints": endpoints.collect::<Vec<_>>()})
}

/// Time as objects hold it: to the second.
fn clock(admin: &Admin) -> Value {
    let now = admin.now();
    let second = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
    json!({"now": second.to_string(), "canAdvance": admin.can_advance()})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    #[serde(with = "duration")]
    by: Duration,
}

async fn advance(admin: &Admin, body: &[u8]) -> Result<Value, ApiError> {
    let asked: Advance = serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!("{error}: how much time is to pass is said as {{\"by\":\"1h30m\"}}"))
    })?;
    match admin.advance(asked.by).await {
        Ok(_) => Ok(clock(admin)),
        Err(error @ AdvanceError::TooFar) => Err(ApiError::bad_request(error.to_string())),
        Err(error @ AdvanceError::Machine) => {
            Err(ApiError::new(StatusCode::CONFLICT, "Conflict", error.to_string()))
        }
        Err(error @ AdvanceError::Ended) => {
            Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", error.to_string()))
        }
    }
}

fn requests(admin: &Admin, query: &str) -> Result<Value, ApiError> {
    let mut limit = TOLD;
    let mut wanted = Map::new();
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "limit" => {
                limit = value
                    .parse()
                    .map_err(|_| ApiError::bad_request(format!("the limit {value:?} is no number")))?;
            }
            "verbs" | "except" => {
                wanted.insert(key.into_owned(), value.split(',').collect());
            }
            _ => {
                wanted.insert(key.into_owned(), value.into_owned().into());
            }
        }
    }
    let wanted: Match = kubewright_objects::from_value(Value::Object(wanted))
        .map_err(|error| ApiError::bad_request(format!("{error}, or `limit`")))?;
    Ok(json!(admin.requests(&wanted, limit)))
}

fn number(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| ApiError::bad_request(format!("{text:?} is no number of a fault")))
}

fn no_fault(id: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "NotFound", format!("there is no fault {id}"))
}

/// 404 for a path that is not there, 405 for a method that a path does not have.
fn unknown(segments: &[&str]) -> ApiError {
    let asked = segments.join("/");
    let known: Vec<String> = ENDPOINTS
        .iter()
        .filter(|(_, path, ..)| {
            path.strip_prefix(ROOT).is_some_and(|path| path.trim_start_matches('/') == asked)
        })
        .map(|(method, path, ..)| format!("{method} {path}"))
        .collect();
    if known.is_empty() {
        let all: Vec<String> =
            ENDPOINTS.iter().map(|(method, path, ..)| format!("{method} {path}")).collect();
        let message = format!("there is no {ROOT}/{asked}; there are {}", all.join(", "));
        return ApiError::new(StatusCode::NOT_FOUND, "NotFound", message);
    }
    let message = format!("there is only {}", known.join(", "));
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
}
