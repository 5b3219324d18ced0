//! What a container sees of its pod's volumes (`makeMounts` in `pkg/kubelet/kubelet_pods.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use k8s_openapi::api::core::v1::{Container, VolumeMount};

use super::expansion::expand;
use super::inside;
use super::volumes::{Planned, Volumes};
use crate::container::Mount;
use crate::files::{Held, Links, Missing};

/// The mounts of a container's `volumeMounts`, in their order. Missing folders of a `subPath` are made. Propagation is
/// passed over: nothing that a container mounts is seen outside.
///
/// # Errors
/// A volume is not there, or a `subPath` makes no sense, has no value or leads out of its volume.
pub(super) fn mounts(
    container: &Container,
    volumes: &Volumes,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<Mount>, String> {
    if let Some(device) = container.volume_devices.iter().flatten().next() {
        return Err(format!(
            "cannot find volume {:?} to pass into container {:?}",
            device.name, container.name
        ));
    }
    let mounts = container.volume_mounts.iter().flatten();
    mounts.map(|mount| of_volume(mount, container, volumes, environment)).collect()
}

fn of_volume(
    mount: &VolumeMount,
    container: &Container,
    volumes: &Volumes,
    environment: &BTreeMap<String, String>,
) -> Result<Mount, String> {
    let VolumeMount { name, mount_path, .. } = mount;
    let volume = volumes
        .get(name)
        .ok_or_else(|| format!("cannot find volume {name:?} to mount into container {:?}", container.name))?;
    let sub_path = sub_path(mount, environment)?;
    refuse_recursive(mount)?;
    prepare(volume, &sub_path).map_err(|tried| {
        // The machine's own message might tell the pod of files that are not its own.
        format!("failed to {tried} for volumeMount {name:?} of container {:?}", container.name)
    })?;
    let source = volume.source().to_owned();
    let read_only = volume.is_read_only() || mount.read_only.unwrap_or_default();
    let target = inside::clean(&Path::new("/").join(mount_path));
    Ok(Mount { source, sub_path: sub_path.into(), target, read_only })
}

/// The part of the volume that is mounted; empty is all of it (`ExpandContainerVolumeMounts`).
fn sub_path(mount: &VolumeMount, environment: &BTreeMap<String, String>) -> Result<String, String> {
    let expression = mount.sub_path_expr.as_deref().unwrap_or_default();
    let path = if expression.is_empty() {
        mount.sub_path.clone().unwrap_or_default()
    } else {
        let mut missing = BTreeSet::new();
        let path = expand(expression, |name| {
            let value = environment.get(name).filter(|value| !value.is_empty());
            if value.is_none() {
                missing.insert(name.to_owned());
            }
            Some(value.cloned().unwrap_or_default())
        });
        if !missing.is_empty() {
            let names = missing.into_iter().collect::<Vec<_>>().join(", ");
            return Err(format!("missing value for {names}"));
        }
        path
    };
    if path.starts_with('/') {
        return Err(format!("error SubPath `{path}` must not be an absolute path"));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(format!("unable to provision SubPath `{path}`: must not contain '..'"));
    }
    Ok(path)
}

/// Makes folders of a `subPath` that are missing, and looks whether it is in its volume: so that the kubelet's words tell what
/// is wrong. What the container sees is looked up again, and then held, by whoever mounts it: other containers of the pod may have
/// changed it by then.
///
/// # Errors
/// What was tried.
fn prepare(volume: &Planned, sub_path: &str) -> Result<(), &'static str> {
    const PREPARE: &str = "prepare subPath";
    if sub_path.is_empty() {
        return Ok(());
    }
    let path = Path::new(sub_path);
    let held = Held::open(volume.source()).map_err(|_| PREPARE)?;
    match held.find(path, Links::Beneath) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && volume.may_be_extended() => {
            let mode = held.stat().map_err(|_| PREPARE)?.st_mode & 0o7777;
            let made = held.make(path, Links::Beneath, Missing::FolderOfMode(mode));
            made.map(drop).map_err(|_| "create subPath directory")
        }
        found => found.map(drop).map_err(|_| PREPARE),
    }
}

/// Whatever is mounted here is read-only only itself (`resolveRecursiveReadOnly`).
fn refuse_recursive(mount: &VolumeMount) -> Result<(), String> {
    let name = &mount.name;
    match mount.recursive_read_only.as_deref() {
        Some("Enabled") => Err(format!(
            "failed to resolve recursive read-only mode: volume {name:?} requested recursive read-only mode, \
             but it is not supported by the runtime"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::inputs::fixture::{NOW, Scratch, first, node, place, pod};
    use crate::inputs::{Fetched, volumes};

    /// The mounts of a container with these `volumeMounts`, of the volumes `scratch` and `map`.
    fn of(folder: &Path, mounts: &Value) -> Result<Vec<Mount>, String> {
        let pod = pod(json!({
            "containers": [{"name": "app", "volumeMounts": mounts}],
            "volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "map", "configMap": {"name": "c"}}]}));
        let node = node(folder);
        let fetched = Fetched::default().config_map("c", json!({"key": "value"}));
        let plan = volumes::plan(&pod, &fetched, place(&node));
        for (name, planned) in &plan.volumes {
            volumes::write(name, planned, &pod, NOW).unwrap();
        }
        let environment = [("A", "a"), ("EMPTY", ""), ("UP", "..")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        super::mounts(first(&pod), &plan.volumes, &environment)
    }

    fn one(folder: &Path, mut mount: Value) -> Result<Mount, String> {
        mount["mountPath"] = json!("/m");
        of(folder, &json!([mount])).map(|mut mounts| mounts.remove(0))
    }

    #[test]
    fn volumes_are_seen_where_the_container_wants_them() {
        let folder = Scratch::new();
        let mounts = json!([{"name": "map", "mountPath": "/etc/map"}, {"name": "scratch", "mountPath": "../x/.././tmp/", "readOnly": true},
            {"name": "scratch", "mountPath": "/data", "subPathExpr": "$(A)/b"}]);
        let volumes = folder.join("pods/u1/volumes");
        let mount = |source: &str, sub_path: &str, target: &str, read_only| Mount {
            source: volumes.join(source),
            sub_path: sub_path.into(),
            target: target.into(),
            read_only,
        };
        let expected = [
            mount("kubernetes.io~configmap/map", "", "/etc/map", true),
            mount("kubernetes.io~empty-dir/scratch", "", "/tmp", true),
            mount("kubernetes.io~empty-dir/scratch", "a/b", "/data", false),
        ];
        assert_eq!(of(&folder, &mounts).unwrap(), expected);
        assert!(expected[2].source.join("a/b").is_dir());
    }

    #[test]
    fn a_key_that_is_mounted_alone_is_the_file_of_that_moment() {
        let folder = Scratch::new();
        let mount = one(&folder, json!({"name": "map", "subPath": "key"})).unwrap();
        let held = Held::open(&mount.source).unwrap().find(&mount.sub_path, Links::Beneath).unwrap();
        assert!(!held.is_folder().unwrap());
        let links = folder.join("pods/u1/volumes/kubernetes.io~configmap/map/..data/key");
        let file = links.canonicalize().unwrap();
        assert_eq!(
            held.stat().unwrap().st_ino,
            std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap())
        );
    }

    #[test]
    fn paths_that_make_no_sense_are_told_in_the_kubelets_words() {
        let folder = Scratch::new();
        for (mount, message) in [
            (json!({"subPath": "/abs"}), "error SubPath `/abs` must not be an absolute path"),
            (json!({"subPathExpr": "x/$(UP)"}), "unable to provision SubPath `x/..`: must not contain '..'"),
            (json!({"subPathExpr": "$(NO)/$(EMPTY)/$(A)"}), "missing value for EMPTY, NO"),
            (
                json!({"recursiveReadOnly": "Enabled"}),
                "failed to resolve recursive read-only mode: volume \"scratch\" \
                requested recursive read-only mode, but it is not supported by the runtime",
            ),
        ] {
            let mut mount = mount;
            mount["name"] = json!("scratch");
            assert_eq!(one(&folder, mount), Err(message.to_owned()));
        }
        assert_eq!(
            one(&folder, json!({"name": "none"})),
            Err("cannot find volume \"none\" to mount into container \"app\"".to_owned())
        );
    }

    #[test]
    fn a_link_that_a_container_made_shows_nothing_outside_of_its_volume() {
        let folder = Scratch::new();
        let mount = one(&folder, json!({"name": "scratch"})).unwrap();
        std::os::unix::fs::symlink("/", mount.source.join("out")).unwrap();
        std::os::unix::fs::symlink("none", mount.source.join("dangling")).unwrap();
        for (path, tried) in [("out/etc", "prepare subPath"), ("dangling/x", "create subPath directory")] {
            assert_eq!(
                one(&folder, json!({"name": "scratch", "subPath": path})),
                Err(format!("failed to {tried} for volumeMount \"scratch\" of container \"app\""))
            );
        }
    }
}
