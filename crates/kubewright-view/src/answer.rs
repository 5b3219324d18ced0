//! Answers: their bodies, and the headers that keep a page and its data to themselves.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde::Serialize;
use serde_json::json;

/// The body of an answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What the page may do: run its own files, and speak with where it is from.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Error of a request: what is answered.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) StatusCode, pub(crate) String);

impl Refusal {
    /// 400.
    pub(crate) fn bad(why: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, why.into())
    }

    /// 404.
    pub(crate) fn missing(why: impl Into<String>) -> Self {
        Self(StatusCode::NOT_FOUND, why.into())
    }
}

impl From<Refusal> for Response<Body> {
    fn from(Refusal(status, why): Refusal) -> Self {
        let mut response = json(&json!({"error": why}));
        *response.status_mut() = status;
        response
    }
}

/// 200 with JSON.
pub(crate) fn json(value: &impl Serialize) -> Response<Body> {
    bytes("application/json", serde_json::to_vec(value).unwrap_or_default())
}

/// 200 with bytes.
pub(crate) fn bytes(media_type: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    streamed(media_type, Full::new(bytes.into()).boxed_unsync())
}

/// 200 with a body that goes on.
pub(crate) fn streamed(media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers: [(HeaderName, &'static str); 6] = [
        (CONTENT_TYPE, media_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    response.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}
