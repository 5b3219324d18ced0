//! Selectors: which labels ([`LabelSelector`]) objects must have, and the terms of field selectors ([`field_terms`]), which
//! only a kind can make sense of.

mod labels;
mod parse;
mod terms;

pub use labels::LabelSelector;
pub use terms::{Term, field_terms, split_term, split_terms, unescape};
