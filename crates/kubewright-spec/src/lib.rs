//! What each version of Kubernetes says of itself, as tables of text: one folder a version, one fact a line. They are made by
//! `cargo xtask spec` from the published programs and Go modules of the version, and by nobody's hand.
//!
//! A table is read when something of it is first asked for.

mod columns;
mod fields;
mod gates;
mod resources;
mod structs;
mod version;

pub use columns::{Column, columns_of};
pub use fields::{Field, fields_of, types};
pub use gates::{Gate, Stage, gate, has_feature, is_gate};
pub use resources::is_served;
pub use structs::{StructField, struct_fields};
pub use version::{Tables, Version};
