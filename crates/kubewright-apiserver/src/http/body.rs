//! Request bodies: collected within the limit, decoded within the limits of depth.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use super::negotiate::TextEncoding;
use super::{in_flight, json, yaml};
use crate::error::ApiError;
use crate::patch::type_name;

/// Any error of a body.
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// Why a body does not come to its end.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Broken(BoxError);

/// The body of a request, of whatever type.
pub(super) type RequestBody = UnsyncBoxBody<Bytes, Broken>;

/// Forgets the type of a body.
pub(super) fn boxed<B>(body: B) -> RequestBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(|error| Broken(error.into())).boxed_unsync()
}

/// The most bytes that a body may have: 3 MiB, as in kube-apiserver.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// Reads a whole body, for so long at most.
///
/// # Errors
/// 413 over [`BODY_LIMIT`]; 400 when the client goes away in the middle; 504 when it has not come in time.
pub(super) async fn collect(body: &mut RequestBody, longest: Duration) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(longest, Limited::new(body, BODY_LIMIT).collect());
    match read.await.map_err(|_| in_flight::timed_out())? {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large(BODY_LIMIT)),
        Err(error) => Err(ApiError::bad_request(format!("unable to read the request body: {error}"))),
    }
}

/// Reads what is left of the body of a request that was answered without it, so that its connection can be used again;
/// not all of a long one, nor of one that does not come (Go's `net/http` does it, too).
pub(super) async fn drain(body: &mut RequestBody) {
    const MOST: usize = 256 * 1024;
    const LONGEST: Duration = Duration::from_secs(1);
    if body.is_end_stream() {
        return;
    }
    let read = async {
        let mut length = 0;
        while let Some(Ok(frame)) = body.frame().await {
            length += frame.data_ref().map_or(0, Bytes::len);
            if length > MOST {
                break;
            }
        }
    };
    // Whether it is all there or not, the answer is given.
    let _ = tokio::time::timeout(LONGEST, read).await;
}

/// A decoded body.
#[derive(Debug)]
pub struct Decoded {
    /// The value: an object, or null.
    pub value: Value,
    /// What it was decoded from.
    pub origin: Origin,
}

/// What a value was decoded from; strict validation asks for members that stand in their object twice.
#[derive(Debug)]
pub enum Origin {
    /// A form that cannot repeat a member: protobuf, or no text at all.
    Unrepeated,
    /// An object that a patch has changed.
    Patch {
        /// What strict decoding has against the patch itself.
        complaints: Vec<String>,
    },
    /// JSON.
    Json {
        /// The text.
        text: Bytes,
        /// The paths of repeated members, in its order.
        repeated: Vec<String>,
    },
    /// YAML.
    Yaml {
        /// The text.
        text: Bytes,
        /// Such as `line 7: key "k" already set in map`.
        repeated: Vec<String>,
    },
}

impl Decoded {
    /// A value that comes from no text.
    #[must_use]
    pub fn of(value: Value) -> Self {
        Self { value, origin: Origin::Unrepeated }
    }
}

impl Origin {
    /// The text that was decoded; empty where there was none.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        match self {
            Self::Unrepeated | Self::Patch { .. } => &[],
            Self::Json { text, .. } | Self::Yaml { text, .. } => text,
        }
    }

    /// What strict validation complains of, one text each: repeated members, and `unknown` ones (paths). For a built-in
    /// kind they come in the order of the text, for a `custom` one unknown members come last
    /// (`sigs.k8s.io/json`; `apiextensions-apiserver/pkg/apiserver`, `schemaCoercingDecoder`).
    #[must_use]
    pub fn complaints(&self, unknown: &[String], custom: bool) -> Vec<String> {
        let of_unknown = || unknown.iter().map(|path| format!("unknown field {path:?}"));
        match self {
            Self::Unrepeated => of_unknown().collect(),
            Self::Patch { complaints } => complaints.iter().cloned().chain(of_unknown()).collect(),
            Self::Yaml { repeated, .. } => repeated.iter().cloned().chain(of_unknown()).collect(),
            Self::Json { text, repeated } if !custom && unknown.len() + repeated.len() > 1 => {
                json::complaints(text, unknown)
            }
            Self::Json { repeated, .. } => {
                repeated.iter().map(|path| format!("duplicate field {path:?}")).chain(of_unknown()).collect()
            }
        }
    }

    /// [`Origin::complaints`] in one message; `None` when there are none.
    #[must_use]
    pub fn strict_error(&self, unknown: &[String], custom: bool) -> Option<String> {
        let complaints = self.complaints(unknown, custom);
        let keys = match self {
            Self::Yaml { repeated, .. } => repeated.len(),
            Self::Unrepeated | Self::Patch { .. } | Self::Json { .. } => 0,
        };
        let (keys, others) = complaints.split_at(keys);
        let keys = (!keys.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", keys.join("\n  ")));
        let all: Vec<String> = keys.into_iter().chain(others.iter().cloned()).collect();
        (!all.is_empty()).then(|| format!("strict decoding error: {}", all.join(", ")))
    }
}

/// Decodes JSON or YAML of an object, or of nothing (null). Nesting is limited, aliases of YAML too.
///
/// # Errors
/// What is wrong, as a part of the message about an unrecognized object.
pub fn decode(bytes: &Bytes, encoding: TextEncoding) -> Result<Decoded, String> {
    let decoded = match encoding {
        TextEncoding::Json => {
            let parsed = json::decode(bytes).map_err(|error| no_type(&error))?;
            let origin = Origin::Json { text: bytes.clone(), repeated: parsed.repeated };
            Decoded { value: parsed.value, origin }
        }
        TextEncoding::Yaml => {
            let parsed = yaml::decode(bytes)?;
            let origin = Origin::Yaml { text: bytes.clone(), repeated: parsed.repeated };
            Decoded { value: parsed.value, origin }
        }
    };
    check_type_fields(&decoded.value)?;
    Ok(decoded)
}

/// Whether `apiVersion` and `kind` can be read (`k8s.io/apimachinery/pkg/runtime/serializer/json/meta.go`).
fn check_type_fields(value: &Value) -> Result<(), String> {
    let Value::Object(object) = value else {
        return match value {
            Value::Null => Ok(()),
            other => Err(no_type(&format!(
                r#"json: cannot unmarshal {} into Go value of type struct {{ APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }}"#,
                type_name(other)
            ))),
        };
    };
    for field in ["apiVersion", "kind"] {
        match object.get(field) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                return Err(no_type(&format!(
                    "json: cannot unmarshal {} into Go struct field .{field} of type string",
                    type_name(other)
                )));
            }
        }
    }
    Ok(())
}

fn no_type(reason: &str) -> String {
    format!("couldn't get version/kind; json parse error: {reason}")
}

/// The answer to a body that is no object of any kind: a 400
/// (`k8s.io/apiserver/pkg/endpoints/handlers/rest.go`, `transformDecodeError`).
#[must_use]
pub fn unrecognized(kind: &str, reason: &str, body: &[u8]) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {reason} ({})",
        excerpt(body)
    ))
}

/// The beginning of a body that makes no sense, for a message (`k8s.io/apiserver/pkg/endpoints/handlers/rest.go`,
/// `summarizeData`): as it is where it looks like JSON, else in hexadecimal digits.
#[must_use]
pub fn excerpt(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let (shown, more) = body.split_at_checked(SHOWN).unwrap_or((body, &[]));
    let text = match shown {
        [] => return "<empty>".to_owned(),
        [b'{', ..] => String::from_utf8_lossy(shown).into_owned(),
        _ => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if more.is_empty() { text } else { format!("{text} ...") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_left_of_a_body_is_read_but_not_all_of_a_long_one_nor_for_long() {
        async fn left_of(chunks: usize) -> usize {
            let read = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&read);
            let frames = (0..chunks).map(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok(Frame::data(vec![0; 1024].into()))
            });
            drain(&mut StreamBody::new(stream::iter(frames)).boxed_unsync()).await;
            chunks - read.load(Ordering::Relaxed)
        }
        assert_eq!((left_of(0).await, left_of(200).await), (0, 0));
        assert_eq!(left_of(1000).await, 1000 - 257);
        drain(&mut StreamBody::new(stream::pending()).boxed_unsync()).await;
    }

    #[test]
    fn an_excerpt_shows_json_as_text_and_all_else_in_digits() {
        assert_eq!(excerpt(b""), "<empty>");
        assert_eq!(excerpt(b"{not json"), "{not json");
        assert_eq!(excerpt(b"[]"), "5b5d");
        assert_eq!(excerpt(&[b'{'; 31]), format!("{} ...", "{".repeat(30)));
    }
}
