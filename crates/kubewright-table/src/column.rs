//! The description of a column.

use std::sync::OnceLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// A column of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: u8,
}

/// The name of the object.
pub(super) const NAME: Column = Column { format: "name", ..text("Name") };

pub(super) const fn text(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 0 }
}

pub(super) const fn integer(name: &'static str) -> Column {
    Column { kind: "integer", ..text(name) }
}

pub(super) const fn boolean(name: &'static str) -> Column {
    Column { kind: "boolean", ..text(name) }
}

pub(super) const fn date(name: &'static str) -> Column {
    Column { kind: "date", ..text(name) }
}

impl Column {
    /// Shown in wide output only.
    pub(super) const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    /// Holds a name.
    pub(super) const fn of_names(self) -> Self {
        Self { format: "name", ..self }
    }

    /// The column definition. Only columns that show metadata are described.
    pub(super) fn definition(&self) -> Value {
        let description = match self.name {
            "Name" => metadata_description("name"),
            "Created At" => metadata_description("creationTimestamp"),
            _ => String::new(),
        };
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": description,
            "priority": self.priority,
        })
    }
}

/// What the API says of a field of `metadata`.
pub(super) fn metadata_description(field: &str) -> String {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let schema = SCHEMA.get_or_init(|| schemars::schema_for!(ObjectMeta).to_value());
    schema["properties"][field]["description"].as_str().unwrap_or_default().to_owned()
}
