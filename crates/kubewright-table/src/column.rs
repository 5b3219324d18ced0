//! The description of a column.

use serde_json::{Value, json};

/// What the API says of `metadata.name` (a test of `kubewright-kinds` compares it with the schema).
pub const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// What the API says of `metadata.creationTimestamp`.
pub const CREATION_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// A column of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: u8,
    /// Where the tables of a version have none.
    description: &'static str,
}

/// The name of the object.
pub(super) const NAME: Column = Column { format: "name", ..text("Name") };

pub(super) const fn text(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 0, description: "" }
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

    /// Described so where no version of Kubernetes does.
    pub(super) const fn described(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Holds a name.
    pub(super) const fn of_names(self) -> Self {
        Self { format: "name", ..self }
    }

    /// The column definition, with what a version of Kubernetes says of the column; without that only columns that show metadata
    /// are described.
    pub(super) fn definition(&self, description: Option<&str>) -> Value {
        let of_metadata = || match self.name {
            "Name" => NAME_DESCRIPTION,
            "Created At" => CREATION_DESCRIPTION,
            _ => self.description,
        };
        // The table of a version has each text in one line; those of metadata are known with their line breaks.
        let in_one_line = CREATION_DESCRIPTION.replace('\n', " ");
        let description = match description {
            Some(said) if said == in_one_line => CREATION_DESCRIPTION,
            Some(said) => said,
            None => of_metadata(),
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
