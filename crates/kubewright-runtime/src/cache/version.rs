//! Which of two states of an object is the later one.

use kube::api::ObjectMeta;

/// The uid, empty if there is none.
pub(super) fn uid(meta: &ObjectMeta) -> &str {
    meta.uid.as_deref().unwrap_or_default()
}

/// The resource version as a number. It grows with every write to the cluster, and KEP-5504 lets clients compare it.
pub(super) fn version(meta: &ObjectMeta) -> Option<u64> {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok())
}

/// Whether `a` is a later state than `b`. A server whose versions are no numbers is believed in the order it speaks.
pub(super) fn is_newer(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    match (version(a), version(b)) {
        (Some(a), Some(b)) => a > b,
        _ => a.resource_version != b.resource_version || a.resource_version.is_none(),
    }
}
