//! Which objects a list or a watch asks for: label selectors ([`LabelSelector`]) and field selectors
//! ([`FieldSelector`]).

mod fields;
mod labels;
mod parse;
mod terms;

pub use fields::{FieldSelector, NAME, NAMESPACE, Selectable, supported_fields};
pub use labels::LabelSelector;

pub(crate) use terms::field_terms;
