//! Semantic versions.
use super::Implementation;
/// A version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Semver(String);
pub(super) fn find(_: &str) -> Option<Implementation> {
    None
}
