//! Tables: the answer to `Accept: application/json;as=Table;v=v1;g=meta.k8s.io`, which is what kubectl prints.
//!
//! Built-in kinds have printers of their own, one file for one group of kinds
//! (`k8s.io/kubernetes/pkg/printers/internalversion/printers.go`, Kubernetes v1.36); custom kinds are printed by the JSON
//! paths of their definition. The descriptor of a kind names its printer. A table always has all columns: kubectl leaves out those of priority 1 unless it is asked
//! for wide output.

pub mod admission;
mod age;
pub mod batch;
pub mod cluster;
mod column;
pub mod config;
mod custom;
pub mod events;
pub mod flow;
pub mod network;
pub mod pods;
mod printer;
pub mod rbac;
pub mod scaling;
pub mod storage;
mod value;
pub mod workloads;

use jiff::Timestamp;
use serde_json::Value;

use column::Column;
pub use column::{CREATION_DESCRIPTION, NAME_DESCRIPTION};
use custom::CustomColumn;
pub use printer::Printer;

/// The columns of a kind's table.
#[derive(Clone, Debug)]
pub struct Columns(Source);

#[derive(Clone, Debug)]
enum Source {
    BuiltIn(Printer),
    Custom(Vec<CustomColumn>),
}

impl Columns {
    /// The columns of a built-in kind.
    #[must_use]
    pub fn built_in(printer: Printer) -> Self {
        Self(Source::BuiltIn(printer))
    }

    /// The columns of a version of a CustomResourceDefinition (`additionalPrinterColumns`), name first; name and age
    /// when there are none. The first column whose path makes no sense ends them.
    #[must_use]
    pub fn custom(columns: &[Value]) -> Self {
        Self(Source::Custom(custom::columns(columns)))
    }

    /// The `columnDefinitions`.
    #[must_use]
    pub fn definitions(&self) -> Vec<Value> {
        match &self.0 {
            Source::BuiltIn(printer) => printer.columns.iter().map(Column::definition).collect(),
            Source::Custom(columns) => std::iter::once(column::NAME.definition())
                .chain(columns.iter().map(CustomColumn::definition))
                .collect(),
        }
    }

    /// The `cells` of an object's row; ages are as of `now`.
    #[must_use]
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.0 {
            Source::BuiltIn(printer) => (printer.cells)(object, now),
            Source::Custom(columns) => std::iter::once(value::text(object, "/metadata/name").into())
                .chain(columns.iter().map(|column| column.cell(object, now)))
                .collect(),
        }
    }
}

impl Default for Columns {
    /// Name and creation time.
    fn default() -> Self {
        Self(Source::BuiltIn(Printer::NAME_AND_CREATION))
    }
}
