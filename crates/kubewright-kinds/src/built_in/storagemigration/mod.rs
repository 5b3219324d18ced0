//! The group `storagemigration.k8s.io`.

pub mod storage_version_migration;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[&storage_version_migration::STORAGE_VERSION_MIGRATION];
