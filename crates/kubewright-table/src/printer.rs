//! What prints a built-in kind.

use jiff::Timestamp;
use serde_json::Value;

use super::column::{Column, NAME, date};
use super::value::{cells, text};

/// The columns of a built-in kind, and the function that makes a row: one cell for each column.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    pub(super) columns: &'static [Column],
    pub(super) cells: fn(&Value, Timestamp) -> Vec<Value>,
}

impl Printer {
    /// The printer of kinds that have none of their own (`k8s.io/apiserver/pkg/registry/rest/table.go`).
    pub const NAME_AND_CREATION: Self = Self {
        columns: &[NAME, date("Created At")],
        cells: |object, _| {
            let created = match text(object, "/metadata/creationTimestamp") {
                "" => "0001-01-01T00:00:00Z",
                time => time,
            };
            cells![text(object, "/metadata/name"), created]
        },
    };
}
