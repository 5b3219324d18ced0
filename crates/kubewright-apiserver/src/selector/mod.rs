//! Which objects a list or a watch asks for by their fields ([`FieldSelector`]).

mod fields;

pub use fields::{FieldSelector, NAME, NAMESPACE, Selectable, supported_fields};
