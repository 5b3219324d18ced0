//! `application/vnd.kubernetes.protobuf`, as Go clients speak it for built-in kinds: request bodies are decoded into the JSON
//! value that the same client would have sent as JSON (from there on both go the same way), answers are encoded from
//! JSON.
//!
//! A body is four bytes of magic and a `runtime.Unknown`, an envelope with the type of the object and its message
//! (`k8s.io/apimachinery/pkg/runtime/serializer/protobuf`). Custom resources have no messages.
//!
//! **Zero values.** Go writes a field that is no pointer even when it was never set, as zero, and a pointer only when it
//! was set. So `replicas: 0` has to stay and `schedulerName: ""` must not stand in the way of its default. What tells them
//! apart are the tags of Go's types, which the table carries: a zero is dropped where Go's JSON encoder drops it.
//! Messages stay even when they are empty (`emptyDir: {}`), as Go's JSON encoder keeps structs.

pub mod encode;
mod stream;
pub mod table;
mod transcode;
pub mod wire;

use std::fmt;

use kubewright_meta::ApiError;
use serde_json::{Map, Value};

use self::table::Message;
use self::wire::Reader;
use super::body::excerpt;

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

const MAGIC: [u8; 4] = *b"k8s\0";

/// The group of the types that every API group has.
const META: &str = "meta.k8s.io";

/// A type of object that can be a protobuf body.
#[derive(Clone, Copy, Debug)]
pub struct ObjectType<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    message: &'static Message,
}

/// Why a body cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// It is no envelope.
    Envelope(String),
    /// Its object is of another type.
    OtherType {
        /// Of the object.
        api_version: String,
        /// Of the object.
        kind: String,
        /// What is expected, as `apiVersion, kind`.
        expected: String,
    },
    /// Its object does not make sense.
    Object(String),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Envelope(reason) | Self::Object(reason) => f.write_str(reason),
            Self::OtherType { api_version, kind, expected } => write!(
                f,
                "the API version and kind in the data ({api_version}, {kind}) do not match the expected ones ({expected})"
            ),
        }
    }
}

impl<'a> ObjectType<'a> {
    /// The built-in type of that group, version and kind; the options of requests are in the group `meta.k8s.io`.
    /// `None` where Kubernetes has no message for it.
    #[must_use]
    pub fn of(group: &'a str, version: &'a str, kind: &'a str) -> Option<Self> {
        let package = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or_default() };
        let message = Message::named(&format!("{package}/{version}.{kind}"))?;
        Some(Self { group, version, kind, message })
    }

    /// The message of its objects.
    #[must_use]
    pub fn message(&self) -> &'static Message {
        self.message
    }

    /// The object in a body, with its apiVersion and kind; those that the envelope leaves out are this type's.
    ///
    /// # Errors
    /// What is wrong, in the words of Kubernetes.
    pub fn decode(&self, body: &[u8]) -> Result<Value, Mistake> {
        let envelope = Envelope::open(body).map_err(Mistake::Envelope)?;
        let own = self.api_version();
        let api_version = if envelope.api_version.is_empty() { own.clone() } else { envelope.api_version };
        let kind = if envelope.kind.is_empty() { self.kind.to_owned() } else { envelope.kind };
        if kind != self.kind || (api_version != own && self.group != META) {
            return Err(Mistake::OtherType { api_version, kind, expected: format!("{own}, {}", self.kind) });
        }
        let mut object = Map::new();
        transcode::message(self.message, envelope.raw, &mut object, transcode::LEVELS)
            .map_err(Mistake::Object)?;
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.into());
        Ok(Value::Object(object))
    }

    /// The answer to a body that should be an object of this type: a 400
    /// (`k8s.io/apiserver/pkg/endpoints/handlers/rest.go`, `transformDecodeError`).
    #[must_use]
    pub fn refuse(&self, mistake: &Mistake, body: &[u8]) -> ApiError {
        let Self { version, kind, .. } = self;
        ApiError::bad_request(match mistake {
            Mistake::Envelope(reason) => {
                format!(
                    "the object provided is unrecognized (must be of type {kind}): {reason} ({})",
                    excerpt(body)
                )
            }
            Mistake::OtherType { .. } => mistake.to_string(),
            Mistake::Object(reason) => {
                format!("{kind} in version {version:?} cannot be handled as a {kind}: {reason}")
            }
        })
    }

    fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// A `runtime.Unknown`.
#[derive(Default)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn open(body: &'a [u8]) -> wire::Result<Self> {
        let message = match body.strip_prefix(&MAGIC) {
            _ if body.is_empty() => return Err("empty data".to_owned()),
            None => {
                return Err(format!(
                    "provided data does not appear to be a protobuf message, expected prefix [{}]",
                    MAGIC.map(|byte| byte.to_string()).join(" ")
                ));
            }
            Some([]) => return Err("empty body".to_owned()),
            Some(message) => message,
        };
        let mut envelope = Self::default();
        let mut reader = Reader::new(message);
        while let Some((number, wire)) = reader.field()? {
            match number {
                1 => envelope.read_type(wire.bytes("TypeMeta")?)?,
                2 => envelope.raw = wire.bytes("Raw")?,
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &[u8]) -> wire::Result<()> {
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.field()? {
            match number {
                1 => self.api_version = wire.text("APIVersion")?,
                2 => self.kind = wire.text("Kind")?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// An answer in its envelope: an object of a built-in type, of metadata, of discovery, a Status, or a list of such.
/// `None` for what has no message, such as a custom resource or a Table.
#[must_use]
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let api_version = object["apiVersion"].as_str().unwrap_or("v1");
    let kind = object["kind"].as_str()?;
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(&MAGIC);
    encode::delimited(1, &mut out, |out| {
        encode::text(1, api_version, out);
        encode::text(2, kind, out);
    });
    let mut known = true;
    encode::delimited(2, &mut out, |out| known = raw(api_version, kind, object, out));
    // The encoding and the type of the content are left to what is meant by none.
    encode::text(3, "", &mut out);
    encode::text(4, "", &mut out);
    known.then_some(out)
}

/// As [`encode()`], of an object or list as text. What is stored begins with its kind and version, and is written while it is
/// read; other texts are read first.
#[must_use]
pub fn encode_text(text: &[u8]) -> Option<Vec<u8>> {
    stored(text).or_else(|| encode(&serde_json::from_slice(text).ok()?))
}

/// The message of an object as it is stored, without an envelope. `None` for what has none, and for a text that does not begin as
/// what is stored does.
#[must_use]
pub fn message(text: &[u8]) -> Option<Vec<u8>> {
    let (kind, api_version) = type_of(text)?;
    let message = message_of(api_version, kind)?;
    let mut out = Vec::with_capacity(text.len());
    if stream::message(message, text, &mut out).is_err() {
        // A value that makes no sense in its place is as good as none, as in [`encode()`].
        out.clear();
        encode::message(message, &serde_json::from_slice(text).ok()?, &mut out);
    }
    Some(out)
}

/// The answer with an object of that type, of its [message](message()).
#[must_use]
pub fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut out = opened(api_version, kind, message.len());
    out.extend_from_slice(message);
    out.extend_from_slice(&CLOSED);
    out
}

/// What stands before the items of a list, and behind them; `metadata` is the list's, `items` how many bytes the items have, with what
/// stands [before each](item()).
#[must_use]
pub fn list_envelope(
    api_version: &str,
    kind: &str,
    metadata: &Value,
    items: usize,
) -> Option<(Vec<u8>, &'static [u8])> {
    let message = Message::named("meta/v1.ListMeta")?;
    let mut own = Vec::new();
    encode::delimited(1, &mut own, |out| encode::message(message, metadata, out));
    let mut head = opened(api_version, kind, own.len() + items);
    head.append(&mut own);
    Some((head, &CLOSED))
}

/// What stands before a message of that many bytes in a list.
#[must_use]
pub fn item(length: usize) -> Vec<u8> {
    encode::head(2, length)
}

/// The encoding and the type of the content, which are left to what is meant by none.
static CLOSED: [u8; 4] = [3 << 3 | 2, 0, 4 << 3 | 2, 0];

/// The beginning of an envelope, up to a message of that many bytes.
fn opened(api_version: &str, kind: &str, length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(length + 64);
    out.extend_from_slice(&MAGIC);
    encode::delimited(1, &mut out, |out| {
        encode::text(1, api_version, out);
        encode::text(2, kind, out);
    });
    out.extend(encode::head(2, length));
    out
}

/// The kind and the version that a text begins with.
fn type_of(text: &[u8]) -> Option<(&str, &str)> {
    let (kind, rest) = quoted(text.strip_prefix(b"{\"kind\":\"")?)?;
    let (api_version, _) = quoted(rest.strip_prefix(b",\"apiVersion\":\"")?)?;
    Some((kind, api_version))
}

/// `None` for a text that does not begin as what is stored does, or has no message.
fn stored(text: &[u8]) -> Option<Vec<u8>> {
    let (kind, api_version) = type_of(text)?;
    let message = message_of(api_version, kind);
    let item = || message_of(api_version, kind.strip_suffix("List")?);
    let mut out = Vec::with_capacity(text.len() + 64);
    out.extend_from_slice(&MAGIC);
    encode::delimited(1, &mut out, |out| {
        encode::text(1, api_version, out);
        encode::text(2, kind, out);
    });
    let raw = encode::open(2, &mut out);
    match message {
        Some(message) => stream::message(message, text, &mut out).ok()?,
        None => stream::list(item()?, text, &mut out).ok()?,
    }
    encode::close(raw, &mut out);
    encode::text(3, "", &mut out);
    encode::text(4, "", &mut out);
    Some(out)
}

/// The text up to the next quote, and what comes after it.
fn quoted(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = text.iter().position(|byte| *byte == b'"')?;
    Some((std::str::from_utf8(&text[..end]).ok()?, &text[end + 1..]))
}

/// One event of a watch: its length, and a `meta/v1.WatchEvent` with the object in an envelope of its own
/// (`k8s.io/apimachinery/pkg/runtime/serializer/protobuf`, `LengthDelimitedFramer`).
#[must_use]
pub fn encode_event(what: &str, object: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 4];
    out.reserve(object.len() + 32);
    encode::text(1, what, &mut out);
    encode::delimited(2, &mut out, |out| encode::delimited(1, out, |out| out.extend_from_slice(object)));
    let length = u32::try_from(out.len() - 4).unwrap_or(u32::MAX);
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

/// The message of an object or of a list; `false` when there is none.
fn raw(api_version: &str, kind: &str, object: &Value, out: &mut Vec<u8>) -> bool {
    if let Some(message) = message_of(api_version, kind) {
        encode::message(message, object, out);
        return true;
    }
    let item = kind.strip_suffix("List").and_then(|kind| message_of(api_version, kind));
    let (Some(item), Some(metadata)) = (item, Message::named("meta/v1.ListMeta")) else { return false };
    encode::delimited(1, out, |out| encode::message(metadata, &object["metadata"], out));
    for object in object["items"].as_array().into_iter().flatten() {
        encode::delimited(2, out, |out| encode::message(item, object, out));
    }
    true
}

/// The message of a type; those of meta and discovery stand in the group "" or in their own.
fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let of_meta = matches!(
        kind,
        "Status" | "APIGroup" | "APIGroupList" | "APIResourceList" | "APIVersions" | "PartialObjectMetadata"
    );
    match (group, version) {
        ("" | META, _) if of_meta => Message::named(&format!("meta/v1.{kind}")),
        ("apidiscovery.k8s.io", _) => Message::named(&format!("apidiscovery/v2.{kind}")),
        _ => ObjectType::of(group, version, kind).map(|of| of.message),
    }
}

#[cfg(test)]
mod maker;
#[cfg(test)]
mod tests;
