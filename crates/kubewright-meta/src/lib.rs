//! The vocabulary that objects of all kinds share.
//!
//! Metadata ([`object`]), errors as Kubernetes answers them ([`ApiError`]) and as it finds them in fields ([`FieldError`]),
//! label selectors ([`selector`]), quantities, durations, names and other texts ([`quantity`], [`duration`], [`text`]), values as Go writes them ([`go`]), JSON
//! paths, networks of addresses ([`cidr`]), differences in words ([`difference`]), what an object lacks of
//! what is desired ([`desired`], [`subset`]), what it has of fields that somebody applied ([`applied`]), changes that are carried over to a fuller form ([`carry`]), which events are worth a write
//! ([`events`]), what a program has read and written ([`access`]), and what rules of kinds are written with ([`rules`]). All are pure functions on JSON values. No kind is known here, no schema, and no
//! server.

pub mod access;
pub mod applied;
pub mod carry;
pub mod cidr;
pub mod cost;
pub mod desired;
pub mod difference;
pub mod duration;
pub mod error;
pub mod events;
pub mod field;
pub mod go;
pub mod jsonpath;
pub mod object;
pub mod quantity;
pub mod resources;
pub mod rules;
pub mod selector;
pub mod subset;
pub mod text;
pub mod well_known;

pub use error::{ApiError, TypeNames};
pub use field::{FieldError, Problem};
