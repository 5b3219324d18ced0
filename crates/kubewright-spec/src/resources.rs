//! What a version serves by default.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::Version;

/// Whether a version serves a resource (`deployments`) or subresource (`deployments/scale`) of a group and version (`apps/v1`).
#[must_use]
pub fn is_served(version: Version, api_version: &str, resource: &str) -> bool {
    let lines = sections(version).get(api_version).copied().unwrap_or_default().lines();
    lines.filter_map(|line| line.split(' ').next()).any(|name| name == resource)
}

/// The groups and versions that are served, and the lines of their resources.
pub(crate) fn sections(version: Version) -> &'static BTreeMap<&'static str, &'static str> {
    static ALL: [OnceLock<BTreeMap<&str, &str>>; 3] = [const { OnceLock::new() }; 3];
    ALL[version as usize].get_or_init(|| {
        let sections = version.tables().resources.split("\n[").skip(1);
        sections.filter_map(|section| section.split_once("]\n")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_served_from_the_version_on_that_has_it() {
        let served = |version, name| is_served(version, "storage.k8s.io/v1", name);
        assert!(served(Version::V1_35, "csinodes") && !served(Version::V1_36, "csinodes/status"));
        assert!(served(Version::V1_37, "csinodes/status"));
        assert!(!is_served(Version::V1_36, "storagemigration.k8s.io/v1", "storageversionmigrations"));
        assert!(is_served(Version::V1_37, "storagemigration.k8s.io/v1", "storageversionmigrations"));
        assert!(is_served(Version::V1_36, "v1", "pods/log") && !is_served(Version::V1_36, "v1", "pod"));
    }
}
