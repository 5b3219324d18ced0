//! Responses: from bytes, values, streams and errors to HTTP.

use std::convert::Infallible;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;

use super::negotiate::Encoding;
use crate::error::ApiError;

/// The body of every response.
pub type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// An answer of JSON bytes, in the encoding that the client wants.
#[must_use]
pub(super) fn json(code: StatusCode, bytes: Bytes, encoding: Encoding) -> Response<ResponseBody> {
    match encoding {
        Encoding::Json => bytes_of(code, bytes, Encoding::Json.media_type()),
        Encoding::Yaml => {
            let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            match serde_saphyr::to_string(&value) {
                Ok(text) => bytes_of(code, text.into(), Encoding::Yaml.media_type()),
                Err(error) => failure(&ApiError::internal(&error.to_string()), Encoding::Json),
            }
        }
    }
}

/// Plain text.
pub(super) fn text(code: StatusCode, text: impl Into<Bytes>) -> Response<ResponseBody> {
    bytes_of(code, text.into(), PLAIN_TEXT)
}

/// A stream of JSON lines.
pub(super) fn stream(lines: impl Stream<Item = Bytes> + Send + 'static) -> Response<ResponseBody> {
    let body = StreamBody::new(lines.map(|bytes| Ok(Frame::data(bytes))));
    respond(StatusCode::OK, BodyExt::boxed_unsync(body), Encoding::Json.media_type())
}

/// An error as a Status.
#[must_use]
pub(super) fn failure(error: &ApiError, encoding: Encoding) -> Response<ResponseBody> {
    if error.plain {
        return text(error.code, error.message.clone());
    }
    let mut response = json(error.code, error.to_status().to_string().into(), encoding);
    let seconds = error.details.as_ref().and_then(|details| details["retryAfterSeconds"].as_u64());
    if let Some(seconds) = seconds {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    warn(&mut response, &error.warnings);
    response
}

/// Adds `Warning` headers (RFC 7234, code 299), as `k8s.io/apimachinery/pkg/util/net` writes them.
pub(super) fn warn(response: &mut Response<ResponseBody>, warnings: &[String]) {
    const WARNING: HeaderName = HeaderName::from_static("warning");
    for warning in warnings {
        let quoted: String = warning
            .chars()
            .filter(|character| !character.is_control())
            .flat_map(|character| {
                let escape = matches!(character, '"' | '\\').then_some('\\');
                escape.into_iter().chain([character])
            })
            .collect();
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
}

fn bytes_of(code: StatusCode, bytes: Bytes, media_type: &'static str) -> Response<ResponseBody> {
    respond(code, Full::new(bytes).boxed_unsync(), media_type)
}

fn respond(code: StatusCode, body: ResponseBody, media_type: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
