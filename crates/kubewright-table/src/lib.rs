//! Tables: the answer to `Accept: application/json;as=Table;v=v1;g=meta.k8s.io`, which is what kubectl prints.
//!
//! Built-in kinds have printers of their own, one file for one group of kinds
//! (`k8s.io/kubernetes/pkg/printers/internalversion/printers.go`); custom kinds are printed by the JSON
//! paths of their definition. What a table says of its columns is by version of Kubernetes, and in the tables of `kubewright-spec`. The descriptor of a kind names its printer. A table always has all columns: kubectl leaves out those of priority 1 unless it is asked
//! for wide output.

pub mod admission;
mod age;
pub mod batch;
pub mod certificates;
pub mod cluster;
mod column;
pub mod config;
mod custom;
pub mod definitions;
pub mod devices;
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

use std::collections::BTreeMap;

use jiff::Timestamp;
use kubewright_spec::Version;
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
    BuiltIn { printer: Printer, described: Option<Described> },
    Custom(Vec<CustomColumn>),
}

/// Whose columns they are, in a version of Kubernetes: where their descriptions are found.
#[derive(Clone, Copy, Debug)]
struct Described {
    version: Version,
    group: &'static str,
    api_version: &'static str,
    plural: &'static str,
}

impl Described {
    /// The descriptions, by the names of columns.
    fn descriptions(&self) -> BTreeMap<&'static str, String> {
        let api_version = match self.group {
            "" => self.api_version.to_owned(),
            group => format!("{group}/{}", self.api_version),
        };
        let columns = kubewright_spec::columns_of(self.version, &api_version, self.plural);
        columns.map(|column| (column.name, column.description())).collect()
    }
}

impl Columns {
    /// The columns of a built-in kind.
    #[must_use]
    pub fn built_in(printer: Printer) -> Self {
        Self(Source::BuiltIn { printer, described: None })
    }

    /// The columns of a built-in kind of this group, version and plural, described as in a version of Kubernetes.
    #[must_use]
    pub fn of_version(
        kubernetes: Version,
        (group, version, plural): (&'static str, &'static str, &'static str),
        printer: Printer,
    ) -> Self {
        let described = Described { version: kubernetes, group, api_version: version, plural };
        Self(Source::BuiltIn { printer, described: Some(described) })
    }

    /// The same with other columns; those of custom kinds are left as they are.
    pub fn print_by(&mut self, with: Printer) {
        if let Source::BuiltIn { printer, .. } = &mut self.0 {
            *printer = with;
        }
    }

    /// The columns of a version of a CustomResourceDefinition (`additionalPrinterColumns`), name first; name and age
    /// when there are none. The first column whose path makes no sense ends them.
    #[must_use]
    pub fn custom(columns: &[Value]) -> Self {
        Self(Source::Custom(custom::columns(columns)))
    }

    /// Whether they are those of kinds that have no printer of their own: their table has no list of rows before it has a row.
    #[must_use]
    pub fn are_default(&self) -> bool {
        match &self.0 {
            Source::BuiltIn { printer, .. } => {
                let names =
                    |printer: &Printer| printer.columns.iter().map(|column| column.name).collect::<Vec<_>>();
                names(printer) == names(&Printer::NAME_AND_CREATION)
            }
            Source::Custom(_) => false,
        }
    }

    /// The `columnDefinitions`.
    #[must_use]
    pub fn definitions(&self) -> Vec<Value> {
        match &self.0 {
            Source::BuiltIn { printer, described } => {
                let descriptions = described.map(|described| described.descriptions()).unwrap_or_default();
                let description = |column: &Column| descriptions.get(column.name).map(String::as_str);
                printer.columns.iter().map(|column| column.definition(description(column))).collect()
            }
            Source::Custom(columns) => std::iter::once(column::NAME.definition(None))
                .chain(columns.iter().map(CustomColumn::definition))
                .collect(),
        }
    }

    /// The `cells` of an object's row; ages are as of `now`.
    #[must_use]
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.0 {
            Source::BuiltIn { printer, .. } => (printer.cells)(object, now),
            Source::Custom(columns) => std::iter::once(value::text(object, "/metadata/name").into())
                .chain(columns.iter().map(|column| column.cell(object, now)))
                .collect(),
        }
    }

    /// The `conditions` of an object's row, if it has some.
    #[must_use]
    pub fn conditions(&self, object: &Value) -> Option<Value> {
        match &self.0 {
            Source::BuiltIn { printer, .. } => (printer.conditions)(object),
            Source::Custom(_) => None,
        }
    }
}

impl Default for Columns {
    /// Name and creation time.
    fn default() -> Self {
        Self::built_in(Printer::NAME_AND_CREATION)
    }
}
