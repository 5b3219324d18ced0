//! The shapes of an answer: the object itself, its metadata alone, or a table of rows.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use jiff::Timestamp;
use kubewright_store::Entry;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::negotiate::{MetaVersion, Shape};
use crate::error::ApiError;
use crate::kinds::Kind;
use crate::registry::{List, Summary, encode, object};

/// How much of the object the rows of a table carry (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
    /// Nothing.
    None,
}

/// Brings objects of a kind into a shape.
#[derive(Clone)]
pub struct Shaper {
    /// The kind.
    pub kind: Arc<Kind>,
    /// The shape.
    pub shape: Shape,
    /// For tables.
    pub include: IncludeObject,
    /// Ages are as of this time.
    pub now: Timestamp,
    /// Whether a table of this watch has told its columns.
    told_columns: bool,
}

impl Shaper {
    /// A shaper for one answer.
    #[must_use]
    pub fn new(kind: &Arc<Kind>, shape: Shape, include: IncludeObject, now: Timestamp) -> Self {
        Self { kind: Arc::clone(kind), shape, include, now, told_columns: false }
    }

    /// One object.
    ///
    /// # Errors
    /// 500 when a list is wanted.
    pub fn object(&self, bytes: Bytes) -> Result<Bytes, ApiError> {
        match self.shape {
            Shape::MetadataList(_) => Err(ApiError::unexplained("content is not a list")),
            _ => Ok(self.clone().event(bytes)),
        }
    }

    /// The object of a watch event; only the first table of a watch tells its columns.
    pub(crate) fn event(&mut self, bytes: Bytes) -> Bytes {
        match self.shape {
            Shape::Object | Shape::Discovery(_) => bytes,
            Shape::Metadata(version) | Shape::MetadataList(version) => partial_of(version, &bytes).into(),
            Shape::Table(version) => self.table_of(version, &decoded(&bytes)),
        }
    }

    /// The object of a bookmark: nothing but its metadata.
    pub(crate) fn bookmark(&mut self, metadata: &Value) -> Bytes {
        let object =
            json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata});
        match self.shape {
            Shape::Object | Shape::Discovery(_) => encode::bytes(&self.kind, &object),
            Shape::Metadata(version) | Shape::MetadataList(version) => {
                partial(version, &object).to_string().into()
            }
            Shape::Table(version) => self.table_of(version, &object),
        }
    }

    fn table_of(&mut self, version: MetaVersion, object: &Value) -> Bytes {
        let columns =
            if self.told_columns { Value::Null } else { Value::from(self.kind.columns.definitions()) };
        self.told_columns = true;
        json!({
            "kind": "Table",
            "apiVersion": version.api_version(),
            "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]},
            "columnDefinitions": columns,
            "rows": [self.row(version, object)],
        })
        .to_string()
        .into()
    }

    /// A list, in pieces of about [`PIECE`] bytes.
    ///
    /// # Errors
    /// 406 when one object is wanted.
    pub fn list(self, list: List) -> Result<Pieces, ApiError> {
        let head = match self.shape {
            Shape::Object | Shape::Discovery(_) => list.head(),
            Shape::Metadata(_) => {
                let of =
                    if self.kind.custom.is_some() { "unstructured.Unstructured" } else { &self.kind.kind };
                return Err(ApiError::new(
                    StatusCode::NOT_ACCEPTABLE,
                    "NotAcceptable",
                    format!(
                        "you requested PartialObjectMetadata, but the requested object is a list (*{of}List)"
                    ),
                ));
            }
            Shape::MetadataList(version) => format!(
                r#"{{"kind":"PartialObjectMetadataList","apiVersion":"{}","metadata":{},"items":["#,
                version.api_version(),
                without_empty_continue(list.metadata())
            ),
            Shape::Table(version) => format!(
                r#"{{"kind":"Table","apiVersion":"{}","metadata":{},"columnDefinitions":{},"rows":["#,
                version.api_version(),
                without_empty_continue(list.metadata()),
                Value::from(self.kind.columns.definitions())
            ),
        };
        Ok(Pieces { shaper: self, head: Some(head), entries: list.entries, at: 0, ended: false })
    }

    fn write_item(&self, out: &mut BytesMut, entry: &Entry<Summary>) {
        match self.shape {
            Shape::Object | Shape::Discovery(_) => encode::write_item(out, &self.kind, entry),
            Shape::Metadata(version) | Shape::MetadataList(version) => {
                out.put_slice(partial_of(version, &encode::object(&self.kind, entry)).as_bytes());
            }
            Shape::Table(version) => write(out, &self.row(version, &encode::value(&self.kind, entry))),
        }
    }

    fn row(&self, version: MetaVersion, object: &Value) -> Value {
        let mut row = Map::new();
        row.insert("cells".into(), self.kind.columns.cells(object, self.now).into());
        match self.include {
            IncludeObject::None => {}
            IncludeObject::Metadata => drop(row.insert("object".into(), partial(version, object))),
            IncludeObject::Object => drop(row.insert("object".into(), object.clone())),
        }
        Value::Object(row)
    }
}

/// How many bytes of a list are made, and how many bytes of objects read, at once.
const PIECE: usize = 64 * 1024;

/// The JSON of a list, made while the client reads it: whoever lists much holds the shared objects and one piece.
pub struct Pieces {
    shaper: Shaper,
    head: Option<String>,
    entries: Vec<Arc<Entry<Summary>>>,
    at: usize,
    ended: bool,
}

impl Pieces {
    /// Whether all of it is one piece.
    #[must_use]
    pub fn is_small(&self) -> bool {
        let bytes: usize = self.entries.iter().take(PIECE / 64).map(|entry| entry.bytes.len()).sum();
        bytes < PIECE / 2 && self.entries.len() < PIECE / 64 && !matches!(self.shaper.shape, Shape::Table(_))
    }

    /// All of it.
    #[must_use]
    pub fn whole(self) -> Bytes {
        let mut out = BytesMut::new();
        self.for_each(|piece| out.put(piece));
        out.freeze()
    }
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let mut out =
            BytesMut::with_capacity(if self.entries.len() < 8 { 4 * 1024 } else { PIECE + 4 * 1024 });
        if let Some(head) = self.head.take() {
            out.put_slice(head.as_bytes());
        }
        let mut read = 0;
        while let Some(entry) = self.entries.get(self.at) {
            if self.at > 0 {
                out.put_u8(b',');
            }
            self.at += 1;
            self.shaper.write_item(&mut out, entry);
            read += entry.bytes.len();
            if out.len() >= PIECE || read >= PIECE {
                return Some(out.freeze());
            }
        }
        out.put_slice(b"]}");
        self.ended = true;
        Some(out.freeze())
    }
}

fn decoded(bytes: &Bytes) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn partial(version: MetaVersion, object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": version.api_version(), "metadata": object["metadata"]})
}

/// The same of an object's JSON, of which nothing else is decoded.
fn partial_of(version: MetaVersion, object: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    let metadata = serde_json::from_slice(object).map_or("null", |object: Object<'_>| object.metadata.get());
    let version = version.api_version();
    format!(r#"{{"kind":"PartialObjectMetadata","apiVersion":"{version}","metadata":{metadata}}}"#)
}

fn without_empty_continue(mut metadata: Value) -> Value {
    if metadata["continue"] == "" {
        object::as_map(&mut metadata).remove("continue");
    }
    metadata
}

fn write(out: &mut BytesMut, value: &Value) {
    // A JSON value has text keys, and the buffer takes all that is written: this cannot fail.
    let _ = serde_json::to_writer(out.writer(), value);
}
