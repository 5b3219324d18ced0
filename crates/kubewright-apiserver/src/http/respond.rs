//! Responses: from bytes, values, streams and errors to HTTP.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::Stream;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    VARY,
};
use http::{HeaderMap, Response, StatusCode};
use kubewright_codec::negotiate::Encoding;
use kubewright_codec::protobuf;
use kubewright_meta::ApiError;
use serde_json::Value;

pub(super) use super::response_body::ResponseBody;

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// An answer of JSON bytes, in the encoding that the client wants.
#[must_use]
pub(super) fn json(code: StatusCode, bytes: Bytes, encoding: Encoding) -> Response<ResponseBody> {
    match encoding {
        Encoding::Json => return bytes_of(code, as_line(bytes), encoding.media_type()),
        Encoding::Protobuf => {
            if let Some(message) = protobuf::encode_text(&bytes) {
                return bytes_of(code, message.into(), encoding.media_type());
            }
        }
        Encoding::PrettyJson | Encoding::Yaml => {}
    }
    value(code, &serde_json::from_slice(&bytes).unwrap_or_default(), encoding)
}

/// An answer of a value, in the encoding that the client wants; JSON where that encoding has no form for it.
pub(super) fn value(code: StatusCode, value: &Value, encoding: Encoding) -> Response<ResponseBody> {
    let written = match encoding {
        Encoding::Json => None,
        Encoding::PrettyJson => serde_json::to_vec_pretty(value).ok(),
        Encoding::Yaml => serde_saphyr::to_string(value).ok().map(String::into_bytes),
        Encoding::Protobuf => protobuf::encode(value),
    };
    match written {
        Some(bytes) => bytes_of(code, bytes.into(), encoding.media_type()),
        None => bytes_of(code, as_line(value.to_string().into()), Encoding::Json.media_type()),
    }
}

/// JSON that is not made for people ends with a line, as Go's `Encoder` writes it.
static LINE_END: Bytes = Bytes::from_static(b"\n");

fn as_line(bytes: Bytes) -> Bytes {
    let mut own = bytes.try_into_mut().unwrap_or_else(|shared| shared.as_ref().into());
    own.extend_from_slice(&LINE_END);
    own.freeze()
}

fn as_lines(
    pieces: impl Iterator<Item = Bytes> + Send + 'static,
    encoding: Encoding,
) -> impl Iterator<Item = Bytes> + Send + 'static {
    pieces.chain((encoding == Encoding::Json).then(|| LINE_END.clone()))
}

/// Pieces of an answer that are made when the client reads them.
pub(super) fn pieces(
    pieces: impl Iterator<Item = Bytes> + Send + 'static,
    encoding: Encoding,
) -> Response<ResponseBody> {
    respond(StatusCode::OK, ResponseBody::pieces(as_lines(pieces, encoding)), encoding.media_type())
}

/// The same of pieces that are work to make: objects are read and shown in another form.
pub(super) fn rendered(
    pieces: impl Iterator<Item = Bytes> + Send + 'static,
    encoding: Encoding,
) -> Response<ResponseBody> {
    respond(StatusCode::OK, ResponseBody::rendered(as_lines(pieces, encoding)), encoding.media_type())
}

/// Plain text.
pub(super) fn text(code: StatusCode, text: impl Into<Bytes>) -> Response<ResponseBody> {
    bytes_of(code, text.into(), PLAIN_TEXT)
}

/// Plain text that a browser must not take for anything else, as Go's `http.Error` writes it.
pub(super) fn plain_error(code: StatusCode, text: impl Into<Bytes>) -> Response<ResponseBody> {
    not_to_be_guessed(self::text(code, text))
}

fn not_to_be_guessed(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    const OPTIONS: HeaderName = HeaderName::from_static("x-content-type-options");
    response.headers_mut().insert(OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The answer to who may not do what they ask for
/// (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go`, `Forbidden`).
pub(super) fn forbidden(error: &ApiError, encoding: Encoding) -> Response<ResponseBody> {
    not_to_be_guessed(failure(error, encoding))
}

/// A stream of events.
pub(super) fn stream(
    events: impl Stream<Item = Bytes> + Send + 'static,
    encoding: Encoding,
) -> Response<ResponseBody> {
    let media_type = match encoding {
        Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        _ => Encoding::Json.media_type(),
    };
    respond(StatusCode::OK, ResponseBody::stream(events), media_type)
}

/// An error as a Status.
#[must_use]
pub(super) fn failure(error: &ApiError, encoding: Encoding) -> Response<ResponseBody> {
    let mut response = match error.plain {
        true => plain_error(error.code, error.message.clone()),
        false => value(error.code, &error.to_status(), encoding),
    };
    let seconds = error.details.as_ref().and_then(|details| details["retryAfterSeconds"].as_u64());
    if let Some(seconds) = seconds {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    warn(&mut response, error.warnings());
    response
}

const WARNING_HEADER: HeaderName = HeaderName::from_static("warning");
/// The most characters of all warnings of one answer; where they are more, each is cut
/// (`k8s.io/apiserver/pkg/endpoints/filters/warning.go`).
const WARNINGS: usize = 4 * 1024;
/// Where a warning is cut when there are too many.
const WARNING: usize = 256;

/// Adds `Warning` headers (RFC 7234, code 299), each text once, as `k8s.io/apimachinery/pkg/util/net` writes them.
pub(super) fn warn(response: &mut Response<ResponseBody>, warnings: &[String]) {
    for text in recorded(warnings) {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{}\"", quoted(text))) {
            response.headers_mut().append(WARNING_HEADER, value);
        }
    }
}

/// The warnings that are told. With the first that is too much all so far are cut; then it ends as soon as these are too much.
fn recorded(warnings: &[String]) -> Vec<&str> {
    let mut told: Vec<&str> = Vec::new();
    let (mut written, mut cuts) = (0, false);
    let mut seen = BTreeSet::new();
    for warning in warnings.iter().filter(|warning| !warning.is_empty()) {
        if cuts && written >= WARNINGS {
            break;
        }
        if !seen.insert(warning) {
            continue;
        }
        told.push(if cuts { truncated(warning) } else { warning });
        written += told.last().map_or(0, |text| text.chars().count());
        if !cuts && written > WARNINGS {
            cuts = true;
            told.iter_mut().for_each(|text| *text = truncated(text));
            written = told.iter().map(|text| text.chars().count()).sum();
        }
    }
    told
}

/// Warns of something before all that the response warns of.
pub(super) fn warn_first(response: &mut Response<ResponseBody>, warning: &str) {
    let told: Vec<_> = response.headers().get_all(WARNING_HEADER).iter().cloned().collect();
    response.headers_mut().remove(WARNING_HEADER);
    warn(response, &[warning.to_owned()]);
    for value in told {
        response.headers_mut().append(WARNING_HEADER, value);
    }
}

fn truncated(text: &str) -> &str {
    text.char_indices().nth(WARNING).map_or(text, |(end, _)| &text[..end])
}

/// The inside of a quoted string; what is no printable character is left out.
fn quoted(text: &str) -> String {
    text.chars()
        .filter(|character| !character.is_control())
        .flat_map(|character| {
            let escape = matches!(character, '"' | '\\').then_some('\\');
            escape.into_iter().chain([character])
        })
        .collect()
}

/// The size from which on an answer is compressed for a client that can read it: 128 KiB.
const ZIP_FROM: usize = 128 * 1024;

/// Compresses a large answer to a request that allows it
/// (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go`). `size` tells how large an answer is that is made
/// piece by piece.
pub(super) fn zip(response: Response<ResponseBody>, request: &HeaderMap) -> Response<ResponseBody> {
    let asked = request.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let allowed = asked.flat_map(|value| value.split(',')).any(|token| token.trim() == "gzip");
    let body = response.body();
    let large = body.length().is_none_or(|length| length > ZIP_FROM);
    if !allowed || !large || !body.can_be_zipped() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    Response::from_parts(parts, body.zipped())
}

/// An answer of bytes that are of this media type.
pub(super) fn bytes_of(code: StatusCode, bytes: Bytes, media_type: &'static str) -> Response<ResponseBody> {
    respond(code, ResponseBody::whole(bytes), media_type)
}

fn respond(code: StatusCode, body: ResponseBody, media_type: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::json;

    use super::*;

    fn warnings(texts: &[&str]) -> Vec<String> {
        let mut response = text(StatusCode::OK, "");
        warn(&mut response, &texts.iter().map(ToString::to_string).collect::<Vec<_>>());
        let values = response.headers().get_all("warning").iter();
        values.map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_warning_is_quoted_and_told_once() {
        assert_eq!(
            warnings(&["unknown field \"a\"", "b\\c\n", "unknown field \"a\"", ""]),
            [r#"299 - "unknown field \"a\"""#, r#"299 - "b\\c""#]
        );
    }

    #[test]
    fn many_warnings_are_cut() {
        let long = ["a".repeat(5000), "b".repeat(10)];
        let told = warnings(&[&long[0], &long[1]]);
        assert_eq!(told[0].len(), "299 - \"\"".len() + 256);
        assert_eq!(told[1], "299 - \"bbbbbbbbbb\"");
        let many: Vec<String> = (0..1000).map(|at| format!("{at:0>100}")).collect();
        let told = warnings(&many.iter().map(String::as_str).collect::<Vec<_>>());
        // The one with which they are too much is told, too.
        assert_eq!(told.len(), 41);
    }

    #[tokio::test]
    async fn an_answer_is_written_as_it_is_wanted() {
        let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "b"}});
        for (encoding, media_type, begins) in [
            (Encoding::Json, "application/json", &b"{\"apiVersion\""[..]),
            (Encoding::PrettyJson, "application/json", b"{\n  \"apiVersion\""),
            (Encoding::Yaml, "application/yaml", b"apiVersion: v1\n"),
            (Encoding::Protobuf, "application/vnd.kubernetes.protobuf", b"k8s\0"),
        ] {
            let response = json(StatusCode::OK, object.to_string().into(), encoding);
            assert_eq!(response.headers()[CONTENT_TYPE], media_type);
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            assert!(bytes.starts_with(begins), "{bytes:?}");
        }
    }

    #[test]
    fn only_a_large_answer_to_who_asks_is_compressed() {
        let zipped = |size: usize, accept: &'static str| {
            let mut request = HeaderMap::new();
            request.insert(ACCEPT_ENCODING, HeaderValue::from_static(accept));
            let response = zip(text(StatusCode::OK, vec![b'a'; size]), &request);
            response.headers().contains_key(CONTENT_ENCODING)
        };
        assert!(zipped(ZIP_FROM + 1, "deflate, gzip"));
        assert!(!zipped(ZIP_FROM, "gzip"));
        assert!(!zipped(ZIP_FROM + 1, "gzip;q=0"));
        assert!(!zipped(ZIP_FROM + 1, "identity"));
    }
}
