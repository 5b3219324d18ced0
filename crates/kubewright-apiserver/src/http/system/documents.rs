//! Documents that clients keep: OpenAPI and aggregated discovery, each with a tag that changes with what it says.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, HeaderValue, LOCATION, VARY};
use http::{Response, StatusCode};
use jiff::ToSpan;
use kubewright_codec::negotiate::{self, DiscoveryVersion};
use kubewright_kinds::Kinds;
use kubewright_views::openapi::gnostic::{self, OpenApi};
use kubewright_views::{discovery, openapi};
use parking_lot::Mutex;
use ring::digest::{SHA512, digest};
use serde_json::Value;

use super::super::aggregation::Published;
use super::super::respond;
use super::super::response_body::ResponseBody;
use super::SystemRequest;

/// A document and its tag.
#[derive(Clone)]
pub(in crate::http) struct Tagged {
    pub(super) bytes: Bytes,
    pub(super) tag: HeaderValue,
}

/// The forms of an OpenAPI document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Protobuf(OpenApi),
}

impl Form {
    /// The forms of a document of that version, by the subtype of `application` that asks for them. (The one with an `@` is
    /// what client-go asks for; it is no media type, and never the one of the answer.)
    fn of(version: OpenApi) -> [(&'static str, Self); 3] {
        let [old, new] = match version {
            OpenApi::V2 => [
                "com.github.proto-openapi.spec.v2@v1.0+protobuf",
                "com.github.proto-openapi.spec.v2.v1.0+protobuf",
            ],
            OpenApi::V3 => [
                "com.github.proto-openapi.spec.v3@v1.0+protobuf",
                "com.github.proto-openapi.spec.v3.v1.0+protobuf",
            ],
        };
        [("json", Self::Json), (old, Self::Protobuf(version)), (new, Self::Protobuf(version))]
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf(OpenApi::V2) => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            Self::Protobuf(OpenApi::V3) => "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        }
    }

    fn write(self, document: &Value) -> Bytes {
        match self {
            Self::Json => document.to_string().into(),
            Self::Protobuf(version) => gnostic::encode(version, document).into(),
        }
    }
}

/// Documents that are asked for again and again, made when they are first asked for and kept as long as the kinds stay
/// the same: aggregated discovery, and OpenAPI v2 in both its forms. (The documents of OpenAPI v3 are many, and clients keep
/// them themselves.)
#[derive(Default)]
pub(in crate::http) struct Documents(Mutex<Option<Kept>>);

struct Kept {
    kinds: Arc<Kinds>,
    /// What other API servers say.
    published: Arc<Published>,
    aggregated: Vec<((bool, DiscoveryVersion), Tagged)>,
    swagger: Vec<(Form, Tagged)>,
}

/// What documents are made of: what is served here, and elsewhere.
type Sources<'a> = (&'a Arc<Kinds>, &'a Arc<Published>);

impl Documents {
    /// Aggregated discovery of the core group, or of all others.
    pub(super) fn aggregated(
        &self,
        kinds: &Arc<Kinds>,
        published: &Arc<Published>,
        core: bool,
        version: DiscoveryVersion,
    ) -> Tagged {
        let of = (kinds, published);
        let known = Kept::of(of, &mut self.0.lock()).aggregated(core, version);
        known.unwrap_or_else(|| {
            // Nobody waits for it meanwhile; two may make the same.
            let text = discovery::aggregated(kinds, &published.elsewhere, core, version.name()).to_string();
            let made = Tagged { tag: tag(&text), bytes: text.into() };
            if let Some(kept) = Kept::still_of(of, &mut self.0.lock())
                && kept.aggregated(core, version).is_none()
            {
                kept.aggregated.push(((core, version), made.clone()));
            }
            made
        })
    }

    /// OpenAPI v2. The tag is that of the JSON in both forms.
    fn swagger(&self, kinds: &Arc<Kinds>, published: &Arc<Published>, form: Form) -> Tagged {
        let of = (kinds, published);
        let known = Kept::of(of, &mut self.0.lock()).swagger(form);
        known.unwrap_or_else(|| {
            // As above.
            let mut document = openapi::swagger(kinds);
            openapi::add_to_swagger(&mut document, &published.swagger);
            let made = Tagged { bytes: form.write(&document), tag: tag(&document.to_string()) };
            if let Some(kept) = Kept::still_of(of, &mut self.0.lock())
                && kept.swagger(form).is_none()
            {
                kept.swagger.push((form, made.clone()));
            }
            made
        })
    }
}

impl Kept {
    /// What is kept for these kinds, in place of what was for others.
    fn of<'a>(of: Sources<'_>, kept: &'a mut Option<Self>) -> &'a mut Self {
        let same = kept.take().filter(|kept| kept.is_of(of));
        let none = || Self {
            kinds: Arc::clone(of.0),
            published: Arc::clone(of.1),
            aggregated: Vec::new(),
            swagger: Vec::new(),
        };
        kept.insert(same.unwrap_or_else(none))
    }

    /// What is kept for these kinds, unless there are others by now.
    fn still_of<'a>(of: Sources<'_>, kept: &'a mut Option<Self>) -> Option<&'a mut Self> {
        kept.as_mut().filter(|kept| kept.is_of(of))
    }

    fn is_of(&self, (kinds, published): Sources<'_>) -> bool {
        Arc::ptr_eq(&self.kinds, kinds) && Arc::ptr_eq(&self.published, published)
    }

    fn aggregated(&self, core: bool, version: DiscoveryVersion) -> Option<Tagged> {
        let found = self.aggregated.iter().find(|(of, _)| *of == (core, version));
        found.map(|(_, found)| found.clone())
    }

    fn swagger(&self, form: Form) -> Option<Tagged> {
        self.swagger.iter().find(|(of, _)| *of == form).map(|(_, found)| found.clone())
    }
}

/// The hash of what a document says.
fn tag(text: &str) -> HeaderValue {
    let hash: String =
        digest(&SHA512, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    quoted(&hash)
}

fn quoted(hash: &str) -> HeaderValue {
    HeaderValue::try_from(format!("\"{hash}\"")).unwrap_or(HeaderValue::from_static(""))
}

/// `/openapi/v2` (`k8s.io/kube-openapi/pkg/handler`).
pub(super) fn openapi_v2(request: &SystemRequest<'_>, kinds: &Arc<Kinds>) -> Response<ResponseBody> {
    let forms = Form::of(OpenApi::V2);
    let mut response = match negotiate::first_of(request.headers(), &forms) {
        Ok(form) => {
            let published = request.server.aggregation().known.published();
            let document = request.server.documents().swagger(kinds, &published, *form);
            kept_by_clients(request, document, *form)
        }
        Err(_) => nothing(StatusCode::NOT_ACCEPTABLE),
    };
    response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
    response
}

/// `/openapi/v3`, its index and its documents (`k8s.io/kube-openapi/pkg/handler3`).
pub(super) fn openapi_v3(
    request: &SystemRequest<'_>,
    kinds: &Kinds,
    document: &[&str],
) -> Response<ResponseBody> {
    let (group, version) = match document {
        // JSON under the name of plain text, as kube-apiserver labels the index.
        [] => {
            let mut index = openapi::index(kinds);
            openapi::add_to_index(&mut index, &request.server.aggregation().known.published().index);
            return respond::text(StatusCode::OK, index.to_string());
        }
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return nothing(StatusCode::NOT_FOUND),
    };
    let Some(hash) = openapi::hash_of(kinds, group, version) else {
        return nothing(StatusCode::NOT_FOUND);
    };
    let forms = Form::of(OpenApi::V3);
    let mut response = match negotiate::first_of(request.headers(), &forms) {
        Ok(form) => version_document(request, kinds, (group, version), &hash, *form),
        Err(true) => nothing(StatusCode::NOT_ACCEPTABLE),
        // It says nothing to a header in which there is no media type.
        Err(false) => nothing(StatusCode::OK),
    };
    response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
    response
}

/// The document of a version that is served, in one of its forms.
fn version_document(
    request: &SystemRequest<'_>,
    kinds: &Kinds,
    (group, version): (&str, &str),
    hash: &str,
    form: Form,
) -> Response<ResponseBody> {
    let (wanted, tag) = (request.query.text("hash"), quoted(hash));
    if !wanted.is_empty() && wanted != hash {
        let mut response = nothing(StatusCode::MOVED_PERMANENTLY);
        let path =
            if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        let place = HeaderValue::try_from(format!("/openapi/v3/{path}?hash={hash}"));
        let headers = response.headers_mut();
        headers.insert(LOCATION, place.unwrap_or(HeaderValue::from_static("/openapi/v3")));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
        headers.insert(ETAG, tag);
        return response;
    }
    let bytes = match request.has(&tag) {
        true => Bytes::new(),
        false => form.write(&openapi::document(kinds, group, version).unwrap_or_default()),
    };
    let mut response = kept_by_clients(request, Tagged { bytes, tag }, form);
    if !wanted.is_empty() {
        // What has its hash in its address never changes.
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        let now = request.server.engine().world().clock.now();
        let expires = now.checked_add((365 * 24).hours()).unwrap_or(now);
        let expires = expires.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
        headers.insert(EXPIRES, HeaderValue::try_from(expires).unwrap_or(HeaderValue::from_static("0")));
    }
    response
}

/// A document, or 304 for a client that has it.
fn kept_by_clients(request: &SystemRequest<'_>, document: Tagged, form: Form) -> Response<ResponseBody> {
    let mut response = match request.has(&document.tag) {
        true => nothing(StatusCode::NOT_MODIFIED),
        false => respond::bytes_of(StatusCode::OK, document.bytes, form.media_type()),
    };
    response.headers_mut().insert(ETAG, document.tag);
    response
}

/// An answer without a body.
fn nothing(code: StatusCode) -> Response<ResponseBody> {
    let mut response = respond::text(code, "");
    response.headers_mut().remove(CONTENT_TYPE);
    response
}
