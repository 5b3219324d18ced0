//! Documents that clients keep: OpenAPI and aggregated discovery, each with a tag that changes with what it says.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, HeaderValue, LOCATION, VARY};
use http::{Response, StatusCode};
use jiff::ToSpan;
use parking_lot::Mutex;
use ring::digest::{SHA512, digest};

use super::super::negotiate::{DiscoveryVersion, Encoding};
use super::super::respond;
use super::super::response_body::ResponseBody;
use super::Asked;
use crate::error::ApiError;
use crate::kinds::Kinds;
use crate::{discovery, openapi};

/// A document and its tag.
#[derive(Clone)]
pub(in crate::http) struct Tagged {
    pub(super) bytes: Bytes,
    pub(super) tag: HeaderValue,
}

/// Documents that are asked for again and again, kept as long as the kinds stay the same: aggregated discovery. (OpenAPI is
/// large, and clients keep it themselves.)
#[derive(Default)]
pub(in crate::http) struct Documents(Mutex<Option<Kept>>);

struct Kept {
    kinds: Arc<Kinds>,
    aggregated: Vec<((bool, DiscoveryVersion), Tagged)>,
}

impl Documents {
    /// Aggregated discovery of the core group, or of all others.
    pub(super) fn aggregated(&self, kinds: &Arc<Kinds>, core: bool, version: DiscoveryVersion) -> Tagged {
        let mut kept = self.0.lock();
        let same = kept.take().filter(|kept| Arc::ptr_eq(&kept.kinds, kinds));
        let kept =
            kept.insert(same.unwrap_or_else(|| Kept { kinds: Arc::clone(kinds), aggregated: Vec::new() }));
        if let Some((_, found)) = kept.aggregated.iter().find(|(of, _)| *of == (core, version)) {
            return found.clone();
        }
        let made = tagged(discovery::aggregated(kinds, core, version.name()).to_string());
        kept.aggregated.push(((core, version), made.clone()));
        made
    }
}

/// A document with the hash of what it says as its tag.
fn tagged(text: String) -> Tagged {
    let hash: String =
        digest(&SHA512, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    Tagged { bytes: text.into(), tag: quoted(&hash) }
}

fn quoted(hash: &str) -> HeaderValue {
    HeaderValue::try_from(format!("\"{hash}\"")).unwrap_or(HeaderValue::from_static(""))
}

/// The media type of a document that the `Accept` header takes; protobuf of OpenAPI is not written.
fn wants_json(asked: &Asked<'_>) -> bool {
    let accept = asked.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
    accept.is_empty()
        || accept.split(',').any(|clause| {
            let media_type = clause.split(';').next().unwrap_or_default().trim();
            matches!(media_type, "*/*" | "application/*" | "application/json")
        })
}

/// `/openapi/v2` (`k8s.io/kube-openapi/pkg/handler`).
pub(super) fn openapi_v2(asked: &Asked<'_>, kinds: &Kinds) -> Result<Response<ResponseBody>, ApiError> {
    let mut response = if wants_json(asked) {
        let document = tagged(openapi::swagger(kinds).to_string());
        kept_by_clients(asked, document)
    } else {
        not_acceptable()
    };
    response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

/// `/openapi/v3`, its index and its documents (`k8s.io/kube-openapi/pkg/handler3`).
pub(super) fn openapi_v3(
    asked: &Asked<'_>,
    kinds: &Kinds,
    document: &[&str],
) -> Result<Response<ResponseBody>, ApiError> {
    let (group, version) = match document {
        // JSON under the name of plain text, as kube-apiserver labels the index.
        [] => return Ok(respond::text(StatusCode::OK, openapi::index(kinds).to_string())),
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return Ok(nothing(StatusCode::NOT_FOUND)),
    };
    let Some(hash) = openapi::hash_of(kinds, group, version) else {
        return Ok(nothing(StatusCode::NOT_FOUND));
    };
    if !wants_json(asked) {
        let mut response = not_acceptable();
        response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
        return Ok(response);
    }
    let wanted = asked.query.text("hash");
    if !wanted.is_empty() && wanted != hash {
        let mut response = nothing(StatusCode::MOVED_PERMANENTLY);
        let place = format!("/openapi/v3/{}?hash={hash}", document.join("/"));
        let headers = response.headers_mut();
        headers.insert(
            LOCATION,
            HeaderValue::try_from(place).unwrap_or(HeaderValue::from_static("/openapi/v3")),
        );
        headers.insert(ETAG, quoted(&hash));
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        return Ok(response);
    }
    let tag = quoted(&hash);
    let bytes = match asked.has(&tag) {
        true => Bytes::new(),
        false => openapi::document(kinds, group, version).unwrap_or_default().to_string().into(),
    };
    let mut response = kept_by_clients(asked, Tagged { bytes, tag });
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("Accept"));
    if !wanted.is_empty() {
        // What has its hash in its address never changes.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        let now = asked.server.registry().world().clock.now();
        let expires = now.checked_add((365 * 24).hours()).unwrap_or(now);
        let expires = expires.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
        headers.insert(EXPIRES, HeaderValue::try_from(expires).unwrap_or(HeaderValue::from_static("0")));
    }
    Ok(response)
}

/// A document, or 304 for a client that has it.
fn kept_by_clients(asked: &Asked<'_>, document: Tagged) -> Response<ResponseBody> {
    let mut response = match asked.has(&document.tag) {
        true => nothing(StatusCode::NOT_MODIFIED),
        false => respond::json(StatusCode::OK, document.bytes, Encoding::Json),
    };
    response.headers_mut().insert(ETAG, document.tag);
    response
}

fn not_acceptable() -> Response<ResponseBody> {
    nothing(StatusCode::NOT_ACCEPTABLE)
}

/// An answer without a body.
fn nothing(code: StatusCode) -> Response<ResponseBody> {
    let mut response = respond::text(code, "");
    response.headers_mut().remove(CONTENT_TYPE);
    response
}
