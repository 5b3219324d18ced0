//! What rules of kinds are written with: a place in an object ([`at`]), what is wrong there ([`errors`]), defaults
//! ([`fill`]), and the rules that all kinds share.
//!
//! No function here panics on any JSON, whether it fits a schema or not: what has an unexpected type is skipped.

pub mod at;
pub mod errors;
pub mod fill;
pub mod metadata;
pub mod percent;
pub mod selector;
