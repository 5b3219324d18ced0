//! Volumes that are mounted inside others (`pkg/volume/util/nested_volumes.go`).

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::PodSpec;

use crate::inputs::inside::clean;
use crate::inputs::needs::containers;

/// Where other volumes are mounted inside the volume `name`, relative to it: folders that it must have, since a container that
/// cannot write to it cannot make them. What lies inside another of these is left out.
///
/// # Errors
/// A container mounts it outside of its files.
pub(super) fn mount_points(spec: &PodSpec, name: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for container in containers(spec) {
        let mounts = || container.volume_mounts.iter().flatten();
        // Where they are seen: a path that is not absolute begins at the container's `/`.
        let seen = |path: &str| clean(&Path::new("/").join(path));
        let mut all: Vec<PathBuf> = mounts().map(|mount| seen(&mount.mount_path)).collect();
        all.sort();
        for own in mounts().filter(|mount| mount.name == name) {
            let written = clean(Path::new(&own.mount_path));
            if written.starts_with("..") {
                return Err(format!("invalid container mount point {}", written.display()));
            }
            let own = seen(&own.mount_path);
            let mut outermost: Vec<&Path> = Vec::new();
            for other in all.iter().filter(|other| **other != own && other.starts_with(&own)) {
                if outermost.iter().any(|outer| other.starts_with(outer)) {
                    continue;
                }
                outermost.push(other);
                found.extend(other.strip_prefix(&own).map(Path::to_owned));
            }
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}
