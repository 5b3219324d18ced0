//! Kubernetes objects in Rust: which types are objects, and how they are read from JSON and written to it.
//!
//! What serde makes of a type is code for each form of text: of a Pod some hundred kilobytes. So there is one form to read
//! ([`from_json`], of a `str`) and one to write ([`to_json`], to bytes), and a [`Value`](serde_json::Value) goes through text
//! as well ([`from_value`], [`to_value`]). The built-in [kinds](KINDS) that Kubewright's own crates use are compiled here, and
//! crates above link to that: the compiler shares instances of generic code with the crates below one, where it does not
//! compile for speed alone (`opt-level` 0, 1, "s" and "z").

mod by_text;
pub mod devices;
mod json;
mod kinds;
mod object;
mod versions;

pub use self::{
    by_text::ByText,
    json::{convert, fields_of, from_json, from_value, split_fields, to_json, to_value},
    kinds::{DERIVED, KINDS},
    object::{AnyObject, Cached, Head, Kept, Object, Owners, Reduce, decode, decode_compact, erase, typed},
    versions::{field, optional},
};
