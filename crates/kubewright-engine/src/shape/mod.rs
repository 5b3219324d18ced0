//! The shapes of an answer: the object itself, its metadata alone, or a table of rows.

mod messages;

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use jiff::Timestamp;
use kubewright_codec::negotiate::{MetaVersion, Shape};
use kubewright_codec::rope::{PIECE, READ, Rope};
use kubewright_kinds::{Kind, Role, Summary, encode};
use kubewright_meta::{ApiError, object};
use kubewright_store::{Entry, Revision};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub use self::messages::Messages;
use crate::verbs::List;

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
    /// 406 when a list is wanted; of a custom object 500, as Go takes every unstructured object for a list at first.
    pub fn object(&self, bytes: Bytes) -> Result<Bytes, ApiError> {
        match self.shape {
            Shape::MetadataList(_) if self.kind.custom.is_some() => {
                Err(ApiError::unexplained("content is not a list"))
            }
            Shape::MetadataList(_) => Err(not_acceptable(&format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list (*{})",
                go_type(&self.kind)
            ))),
            _ => Ok(self.clone().event(bytes)),
        }
    }

    /// The object of a watch event; only the first table of a watch tells its columns.
    pub fn event(&mut self, bytes: Bytes) -> Bytes {
        match self.shape {
            Shape::Object | Shape::Discovery(_) => bytes,
            Shape::Metadata(version) | Shape::MetadataList(version) => {
                self.partial_of(version, &bytes).into()
            }
            Shape::Table(version) => self.table_of(version, &decoded(&bytes)),
        }
    }

    /// The object of a bookmark: its metadata, and of a built-in kind what Go writes of fields that nobody set.
    pub fn bookmark(&mut self, metadata: &Value) -> Bytes {
        let object = self.kind.unwritten(Some(metadata));
        match self.shape {
            Shape::Object | Shape::Discovery(_) => encode::bytes(&self.kind, &object),
            Shape::Metadata(version) | Shape::MetadataList(version) => {
                self.partial(version, &object).to_string().into()
            }
            Shape::Table(version) => self.table_of(version, &object),
        }
    }

    /// A list of objects that are not stored: it has no version.
    ///
    /// # Errors
    /// 406 when one object is wanted.
    pub fn computed(self, items: impl Iterator<Item = Value>) -> Result<Bytes, ApiError> {
        let list = List {
            kind: Arc::clone(&self.kind),
            revision: Revision(0),
            entries: Vec::new(),
            continue_token: None,
            remaining: None,
        };
        let one = |item: Value| match self.shape {
            Shape::Object | Shape::Discovery(_) => item,
            Shape::Metadata(version) | Shape::MetadataList(version) => self.partial(version, &item),
            Shape::Table(version) => self.row(version, &item),
        };
        let items: Vec<String> = items.map(|item| one(item).to_string()).collect();
        let empty = self.clone().list(list)?.whole();
        let head = empty.strip_suffix(b"]}").unwrap_or(&empty);
        Ok([head, items.join(",").as_bytes(), b"]}"].concat().into())
    }

    fn table_of(&mut self, version: MetaVersion, object: &Value) -> Bytes {
        let columns =
            if self.told_columns { Value::Null } else { Value::from(self.kind.columns.definitions()) };
        self.told_columns = true;
        json!({
            "kind": "Table",
            "apiVersion": version.api_version(),
            "metadata": version_of(object),
            "columnDefinitions": columns,
            "rows": [self.row(version, object)],
        })
        .to_string()
        .into()
    }

    /// A list, in pieces of about [`PIECE`] bytes; large objects are pieces of their own.
    ///
    /// # Errors
    /// 406 when one object is wanted.
    pub fn list(self, list: List) -> Result<Pieces, ApiError> {
        let head = match self.shape {
            Shape::Object | Shape::Discovery(_) => list.head(),
            Shape::Metadata(_) => {
                return Err(not_acceptable(&format!(
                    "you requested PartialObjectMetadata, but the requested object is a list (*{}List)",
                    go_type(&self.kind)
                )));
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
        let mut rope = Rope::default();
        // These tables are made by converters that have no list of rows before they have a row.
        let made_late = self.kind.behaviour.role == Role::Definition || self.kind.columns.are_default();
        let made_late = match self.shape {
            Shape::Table(_) => made_late,
            Shape::MetadataList(_) => true,
            _ => false,
        };
        let no_rows = made_late && list.entries.is_empty();
        let head = if no_rows {
            head.replace("\"rows\":[", "\"rows\":null}").replace("\"items\":[", "\"items\":null}")
        } else {
            head
        };
        rope.copy(head.as_bytes());
        Ok(Pieces { shaper: self, entries: list.entries.into_iter(), is_first: true, ended: no_rows, rope })
    }

    fn write_item(&self, out: &mut Rope, entry: &Entry<Summary>) {
        match self.shape {
            Shape::Object | Shape::Discovery(_) => encode::write_item(out, &self.kind, entry),
            Shape::Metadata(version) | Shape::MetadataList(version) => {
                out.copy(self.partial_of(version, &encode::object(&self.kind, entry)).as_bytes());
            }
            Shape::Table(version) => {
                out.copy(self.row(version, &encode::value(&self.kind, entry)).to_string().as_bytes());
            }
        }
    }

    /// The metadata of an object alone, as they are whatever version it is shown in.
    fn partial(&self, version: MetaVersion, object: &Value) -> Value {
        let mut metadata = object["metadata"].clone();
        for key in self.kind.behaviour.annotations_of_version {
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove(*key);
            }
        }
        if metadata["annotations"] == json!({}) {
            object::as_map(&mut metadata).remove("annotations");
        }
        json!({"kind": "PartialObjectMetadata", "apiVersion": version.api_version(), "metadata": metadata})
    }

    /// The same of an object's JSON, of which nothing else is decoded where all metadata are told.
    fn partial_of(&self, version: MetaVersion, object: &Bytes) -> String {
        if self.kind.behaviour.annotations_of_version.is_empty() {
            return partial_of(version, object);
        }
        self.partial(version, &decoded(object)).to_string()
    }

    fn row(&self, version: MetaVersion, object: &Value) -> Value {
        let mut row = Map::new();
        let printed = self.kind.in_storage(object);
        row.insert("cells".into(), self.kind.columns.cells(&printed, self.now).into());
        if let Some(conditions) = self.kind.columns.conditions(&printed) {
            row.insert("conditions".into(), conditions);
        }
        match self.include {
            IncludeObject::None => {}
            IncludeObject::Metadata => drop(row.insert("object".into(), self.partial(version, object))),
            IncludeObject::Object => drop(row.insert("object".into(), object.clone())),
        }
        Value::Object(row)
    }
}

/// The type that Go prints for objects of a kind: built-in ones are at hand in Kubernetes' internal version.
fn go_type(kind: &Kind) -> String {
    let package = match kind.group.split('.').next() {
        _ if kind.custom.is_some() => return "unstructured.Unstructured".to_owned(),
        None | Some("" | "events") => "core",
        Some(group) => group,
    };
    format!("{package}.{}", kind.kind)
}

fn not_acceptable(why: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", why)
}

/// The metadata of a table of one object: its version, where it has one.
fn version_of(object: &Value) -> Value {
    match object["metadata"].get("resourceVersion") {
        Some(version) => json!({"resourceVersion": version}),
        None => json!({}),
    }
}

/// The JSON of a list, made while the client reads it: whoever lists much holds the shared objects and one piece.
pub struct Pieces {
    shaper: Shaper,
    entries: std::vec::IntoIter<Arc<Entry<Summary>>>,
    is_first: bool,
    ended: bool,
    /// What is made of it, at first what stands before the items.
    rope: Rope,
}

impl Pieces {
    /// Whether all of it is one piece.
    #[must_use]
    pub fn is_small(&self) -> bool {
        const ITEMS: usize = 1024;
        let entries = self.entries.as_slice();
        let bytes: usize = entries.iter().take(ITEMS).map(|entry| entry.bytes.len()).sum();
        bytes < 2 * PIECE && entries.len() < ITEMS && !matches!(self.shaper.shape, Shape::Table(_))
    }

    /// All of it.
    #[must_use]
    pub fn whole(self) -> Bytes {
        let mut out = BytesMut::new();
        self.for_each(|piece| out.put(piece));
        out.freeze()
    }

    /// Makes what is next, up to a piece.
    fn make(&mut self) {
        const MANY: usize = 8;
        if self.entries.len() > MANY && !self.rope.is_full() {
            self.rope.reserve();
        }
        let mut read = 0;
        while !self.rope.is_full() && read < READ && !self.ended {
            let Some(entry) = self.entries.next() else {
                self.ended = true;
                return self.rope.copy(b"]}");
            };
            if !std::mem::replace(&mut self.is_first, false) {
                self.rope.copy(b",");
            }
            self.shaper.write_item(&mut self.rope, &entry);
            read += entry.bytes.len();
        }
    }
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        self.make();
        self.rope.take()
    }
}

fn decoded(bytes: &Bytes) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// The metadata of an object's JSON, of which nothing else is decoded.
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
