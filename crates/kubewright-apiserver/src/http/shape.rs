//! The shapes of an answer: the object itself, its metadata alone, or a table of rows.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::negotiate::Shape;
use crate::kinds::Kind;
use crate::registry::{List, encode, object};

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
    #[must_use]
    pub fn object(&self, bytes: Bytes) -> Bytes {
        match self.shape {
            Shape::Object | Shape::Discovery(_) => bytes,
            Shape::Metadata => partial(&decoded(&bytes)).to_string().into(),
            Shape::Table => {
                let object = decoded(&bytes);
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                self.table(true, &metadata, &[self.row(&object)]).to_string().into()
            }
        }
    }

    /// The object of a watch event; only the first table of a watch tells its columns.
    pub(crate) fn event(&mut self, bytes: Bytes) -> Bytes {
        match self.shape {
            Shape::Table => {
                let object = decoded(&bytes);
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let table = self.table(!self.told_columns, &metadata, &[self.row(&object)]);
                self.told_columns = true;
                table.to_string().into()
            }
            _ => self.object(bytes),
        }
    }

    /// The object of a bookmark: nothing but its metadata.
    pub(crate) fn bookmark(&mut self, metadata: &Value) -> Bytes {
        match self.shape {
            Shape::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata
            })
            .to_string()
            .into(),
            Shape::Table => {
                let object = json!({
                    "kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata
                });
                let version = json!({"resourceVersion": metadata["resourceVersion"]});
                let table = self.table(!self.told_columns, &version, &[self.row(&object)]);
                self.told_columns = true;
                table.to_string().into()
            }
            _ => encode::bytes(&self.kind, &json!({"metadata": metadata})),
        }
    }

    /// A list.
    #[must_use]
    pub fn list(&self, list: &List) -> Bytes {
        let values = || list.entries.iter().map(|entry| encode::value(&self.kind, entry));
        match self.shape {
            Shape::Object | Shape::Discovery(_) => whole_list(list),
            Shape::Metadata => {
                let mut metadata = list.metadata();
                if list.continue_token.is_none() {
                    object::as_map(&mut metadata).remove("continue");
                }
                json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": metadata,
                    "items": values().map(|object| partial(&object)).collect::<Vec<_>>()
                })
                .to_string()
                .into()
            }
            Shape::Table => {
                let rows: Vec<Value> = values().map(|object| self.row(&object)).collect();
                self.table(true, &list.metadata(), &rows).to_string().into()
            }
        }
    }

    fn row(&self, object: &Value) -> Value {
        let mut row = Map::new();
        row.insert("cells".into(), self.kind.columns.cells(object, self.now).into());
        match self.include {
            IncludeObject::None => {}
            IncludeObject::Metadata => drop(row.insert("object".into(), partial(object))),
            IncludeObject::Object => drop(row.insert("object".into(), object.clone())),
        }
        Value::Object(row)
    }

    fn table(&self, columns: bool, metadata: &Value, rows: &[Value]) -> Value {
        let columns = if columns { Value::from(self.kind.columns.definitions()) } else { Value::Null };
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": columns, "rows": rows
        })
    }
}

fn decoded(bytes: &Bytes) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn whole_list(list: &List) -> Bytes {
    let size: usize = list.entries.iter().map(|entry| entry.bytes.len() + 1).sum();
    let mut out = BytesMut::with_capacity(size + 256);
    out.put_slice(list.head().as_bytes());
    for (at, entry) in list.entries.iter().enumerate() {
        if at > 0 {
            out.put_u8(b',');
        }
        encode::write_item(&mut out, &list.kind, entry);
    }
    out.put_slice(b"]}");
    out.freeze()
}
