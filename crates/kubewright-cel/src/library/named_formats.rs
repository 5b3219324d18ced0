//! Formats.
use super::Implementation;
/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedFormat(u8);
pub(super) fn find(_: &str) -> Option<Implementation> {
    None
}
pub(super) fn is_subdomain(name: &str) -> bool {
    !name.is_empty()
}
pub(super) fn is_label(name: &str) -> bool {
    !name.is_empty()
}

impl NamedFormat {
    pub(crate) fn pattern_size(&self) -> u64 {
        30
    }
}
