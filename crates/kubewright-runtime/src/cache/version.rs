//! Which of two states of an object is the later one.

use crate::object::Head;

/// The resource version as a number. It grows with every write to the cluster, and KEP-5504 lets clients compare it.
pub(super) fn version(head: Head<'_>) -> Option<u64> {
    head.resource_version.and_then(|version| version.parse().ok())
}

/// Whether `a` is a later state than `b`. A server whose versions are no numbers is believed in the order it speaks.
pub(crate) fn is_newer(a: Head<'_>, b: Head<'_>) -> bool {
    match (version(a), version(b)) {
        (Some(a), Some(b)) => a > b,
        _ => a.resource_version != b.resource_version || a.resource_version.is_none(),
    }
}
