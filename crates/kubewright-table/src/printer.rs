//! What prints a built-in kind.

use jiff::Timestamp;
use serde_json::Value;

use super::column::{Column, NAME, date};
use super::value::{cells, text};

/// The columns of a built-in kind, and what makes a row of an object.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    pub(super) columns: &'static [Column],
    /// One cell for each column.
    pub(super) cells: fn(&Value, Timestamp) -> Vec<Value>,
    /// The conditions of the row, if it has some.
    pub(super) conditions: fn(&Value) -> Option<Value>,
}

impl Printer {
    pub(super) const fn new(columns: &'static [Column], cells: fn(&Value, Timestamp) -> Vec<Value>) -> Self {
        Self { columns, cells, conditions: |_| None }
    }

    pub(super) const fn with_conditions(self, conditions: fn(&Value) -> Option<Value>) -> Self {
        Self { conditions, ..self }
    }

    /// The printer of kinds that have none of their own (`k8s.io/apiserver/pkg/registry/rest/table.go`).
    pub const NAME_AND_CREATION: Self = Self::new(&[NAME, date("Created At")], |object, _| {
        let created = match text(object, "/metadata/creationTimestamp") {
            "" => "0001-01-01T00:00:00Z",
            time => time,
        };
        cells![text(object, "/metadata/name"), created]
    });
}
