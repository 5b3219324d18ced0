//! Values that JSON writes as text, as Go reads and writes them.

mod binary;
mod time;

pub(crate) use binary::canonical as base64;
pub(crate) use binary::encoded as base64_of;
pub use time::seconds;
pub(crate) use time::{Precision, canonical as time, cut, is_zero as is_zero_time};
