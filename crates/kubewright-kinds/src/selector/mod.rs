//! Which objects a list or a watch asks for by their fields ([`FieldSelector`]).

mod fields;

pub use fields::{Called, Field, FieldSelector, Fields, NAME, NAMESPACE, Refusal, Selectable};
