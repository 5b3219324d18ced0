//! Values that JSON writes as text, as Go reads and writes them.

mod binary;
mod time;

pub(super) use binary::canonical as base64;
pub(crate) use time::seconds;
pub(super) use time::{Precision, canonical as time};
