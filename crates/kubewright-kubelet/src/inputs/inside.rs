//! Paths as they are written.

use std::path::{Component, Path, PathBuf};

/// The path without detours, as far as its text tells (`filepath.Clean`): an absolute one does not leave `/`.
pub(super) fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir
                if matches!(cleaned.components().next_back(), Some(Component::Normal(_))) =>
            {
                cleaned.pop();
            }
            Component::ParentDir if cleaned.has_root() => {}
            Component::CurDir => {}
            other => cleaned.push(other),
        }
    }
    cleaned
}
