//! The log of a container (`k8s.io/kubernetes/pkg/registry/core/pod/rest/log.go`).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::ready;
use futures::{Stream, StreamExt, stream};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use kubewright_meta::{ApiError, FieldError, object};
use kubewright_schema as schema;
use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;

use super::super::dispatch::RequestInfo;
use super::super::respond::{self, ResponseBody};
use super::super::upgrade::{Refused, Upgrade};
use super::super::websocket::{self, Handshake};
use super::{container_of, kubelet_address, node_name, refused, simulated_pod, target};
use crate::kubelet::{LogOptions, LogStream, LogStreamed, Refusal, Since};

pub(super) async fn answer(
    info: &RequestInfo<'_>,
    pod: &Value,
    options: LogOptions,
) -> Result<Response<ResponseBody>, ApiError> {
    let container = container_of(pod, info.query.text("container"))?;
    // A pod that is on no node has written nothing yet.
    if node_name(pod).is_empty() {
        let mut nothing = respond::text(StatusCode::NO_CONTENT, "");
        nothing.headers_mut().remove(http::header::CONTENT_TYPE);
        return Ok(nothing);
    }
    let address = kubelet_address(info, pod)?;
    let kubelet = info.server.kubelets().of(node_name(pod));
    let simulated = || simulated_pod(info, pod)?.logs(&container, options.clone());
    if kubelet.is_none()
        && let Some(log) = simulated()
    {
        return shown(info, log);
    }
    let Some(kubelet) = kubelet else {
        let (namespace, name) = (object::namespace(pod), object::name(pod));
        let start = format!("Get \"https://{address}/containerLogs/{namespace}/{name}/{container}\": ");
        return Err(refused(info, node_name(pod), &start, &address));
    };
    shown(info, kubelet.logs(target(pod, container), options).await)
}

/// The answer with a log.
fn shown(
    info: &RequestInfo<'_>,
    log: Result<LogStreamed, Refusal>,
) -> Result<Response<ResponseBody>, ApiError> {
    let log = log.map_err(|refusal| failure(info.call.name, &refusal))?;
    let pieces = log.map(|piece| {
        piece
            .inspect_err(|error| tracing::debug!(%error, "the log of a container cannot be read further"))
            .ok()
    });
    let pieces = pieces.take_while(|piece| ready(piece.is_some())).filter_map(ready);
    let pieces = pieces.take_until(info.server.shutdown().clone().cancelled_owned());
    if let Some(upgrade) = &info.upgrade
        && websocket::is_asked(info.headers)
    {
        return Ok(match on_websocket(info, upgrade, pieces) {
            Ok(response) => response,
            Err(refused) => *refused,
        });
    }
    let mut response = Response::new(ResponseBody::stream(pieces));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}

/// A log in messages, behind an empty one (`k8s.io/streaming/pkg/httpstream/wsstream/stream.go`).
fn on_websocket(
    info: &RequestInfo<'_>,
    upgrade: &Upgrade,
    pieces: impl Stream<Item = Bytes> + Send + 'static,
) -> Result<Response<ResponseBody>, Refused> {
    let handshake = Handshake::read(info.method, info.headers)?;
    let protocol = websocket::protocol(info.headers, &["binary.k8s.io", "base64.binary.k8s.io"])?;
    let in_base64 = protocol.starts_with("base64.");
    let messages = stream::once(ready(Bytes::new())).chain(pieces).map(move |bytes| match in_base64 {
        true => Message::text(STANDARD.encode(bytes)),
        false => Message::Binary(bytes),
    });
    Ok(websocket::answer(upgrade, handshake, protocol, messages))
}

/// What a kubelet says, as the API server tells it (`k8s.io/apiserver/pkg/registry/generic/rest/response_checker.go`).
fn failure(pod: &str, refusal: &Refusal) -> ApiError {
    match refusal {
        Refusal::BadRequest(why) => ApiError::bad_request(why),
        Refusal::NotFound(_) => {
            let message = format!("the server could not find the requested resource ( pods/log {pod})");
            ApiError::new(StatusCode::NOT_FOUND, "NotFound", message)
                .with_details(serde_json::json!({"name": pod, "kind": "pods/log"}))
        }
        Refusal::Failed(why) => ApiError::internal(why),
    }
}

/// The part of the log that is asked for (`ValidatePodLogOptions` in `k8s.io/kubernetes/pkg/apis/core/validation`), which is looked at
/// before the pod.
pub(super) fn read(info: &RequestInfo<'_>) -> Result<LogOptions, ApiError> {
    let query = info.query;
    let since_time = match query.text("sinceTime") {
        "" | "null" => None,
        text => Some(schema::time(text).map_err(ApiError::bad_request)?),
    };
    let (tail_lines, limit_bytes) = (query.number("tailLines")?, query.number("limitBytes")?);
    let since_seconds = query.number("sinceSeconds")?;
    let mut errors = Vec::new();
    let at_least = |field: &str, number: Option<i64>, least: i64, why: &str| {
        let wrong = number.filter(|number| *number < least);
        wrong.map(|number| FieldError::invalid(field, number, format!("must be greater than {why}")))
    };
    errors.extend(at_least("tailLines", tail_lines, 0, "or equal to 0"));
    errors.extend(at_least("limitBytes", limit_bytes, 1, "0"));
    if since_seconds.is_some() && query.get("sinceTime").is_some() {
        let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.push(FieldError::forbidden("[]", why));
    } else {
        errors.extend(at_least("sinceSeconds", since_seconds, 1, "0"));
    }
    // The feature PodLogsQuerySplitStreams is off.
    if !query.text("stream").is_empty() {
        errors.push(FieldError::forbidden("stream", "may not be specified"));
    }
    if !errors.is_empty() {
        return Err(ApiError::invalid_of("", "PodLogOptions", info.call.name, &errors));
    }
    let ago = since_seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    let time = since_time.and_then(|time| time.parse().ok());
    Ok(LogOptions {
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        since: ago.map(Since::Ago).or(time.map(Since::Time)),
        timestamps: query.flag("timestamps"),
        tail_lines: tail_lines.and_then(|lines| u64::try_from(lines).ok()),
        limit_bytes: limit_bytes.and_then(|bytes| u64::try_from(bytes).ok()),
        stream: LogStream::All,
    })
}
