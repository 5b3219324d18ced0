//! Where a container finds the volumes of its pod.

use std::collections::BTreeSet;

use super::super::at::At;
use super::super::errors::Errors;
use super::PodParts;
use super::paths::{check_descending, climbs};

/// `volumeMounts` (`ValidateVolumeMounts`). Some errors name the list and not the item, as Kubernetes' do.
pub(super) fn check(container: &At<'_>, pod: &PodParts<'_>, errors: &mut Errors) {
    let (mounts, devices) = (container.get("volumeMounts"), container.get("volumeDevices"));
    let (device_names, device_paths) = (texts(&devices, "name"), texts(&devices, "devicePath"));
    let mut points = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        errors.need(&name);
        if !pod.volumes.contains_key(name.text()) {
            errors.not_found(&name);
        }
        errors.need(&path);
        if !points.insert(path.text()) {
            errors.invalid_text(&path, "must be unique");
        }
        if device_names.contains(name.text()) {
            errors.invalid_text(&name, "must not already exist in volumeDevices");
        }
        if device_paths.contains(path.text()) {
            errors.invalid_text(&path, "must not already exist as a path in volumeDevices");
        }
        check_sub_paths(&mounts, &mount, errors);
        check_propagation(&mounts, &mount, container, errors);
        check_recursive_read_only(&mounts, &mount, errors);
    }
}

/// What the items of a list say in a field.
fn texts<'a>(list: &At<'a>, field: &str) -> BTreeSet<&'a str> {
    list.items().map(|item| item.get(field).text()).collect()
}

/// A field of an item, named as if it were one of the list.
fn of_list<'a>(list: &At<'_>, item: &At<'a>, field: &str) -> At<'a> {
    At { path: format!("{}.{field}", list.path), ..item.get(field) }
}

fn check_sub_paths(mounts: &At<'_>, mount: &At<'_>, errors: &mut Errors) {
    let (plain, expanded) = (of_list(mounts, mount, "subPath"), of_list(mounts, mount, "subPathExpr"));
    if !plain.is_empty() {
        check_descending(&plain, errors);
    }
    if !expanded.is_empty() {
        if !plain.is_empty() {
            errors.invalid(&mount.get("subPathExpr"), "subPathExpr and subPath are mutually exclusive");
        }
        check_descending(&expanded, errors);
    }
}

fn check_propagation(mounts: &At<'_>, mount: &At<'_>, container: &At<'_>, errors: &mut Errors) {
    let propagation = of_list(mounts, mount, "mountPropagation");
    errors.maybe_one_of(&propagation, &["Bidirectional", "HostToContainer", "None"]);
    if propagation.text() == "Bidirectional" && !container.dig(&["securityContext", "privileged"]).is_true() {
        errors.forbidden(
            &propagation,
            "Bidirectional mount propagation is available only to privileged containers",
        );
    }
}

fn check_recursive_read_only(mounts: &At<'_>, mount: &At<'_>, errors: &mut Errors) {
    let recursive = of_list(mounts, mount, "recursiveReadOnly");
    errors.maybe_one_of(&recursive, &["Disabled", "Enabled", "IfPossible"]);
    if matches!(recursive.text(), "Enabled" | "IfPossible") {
        if !mount.get("readOnly").is_true() {
            errors.forbidden(&recursive, "may only be specified when readOnly is true");
        }
        if !matches!(mount.get("mountPropagation").text(), "" | "None") {
            errors.forbidden(
                &recursive,
                "may only be specified when mountPropagation is None or not specified",
            );
        }
    }
}

/// `volumeDevices` (`ValidateVolumeDevices`).
pub(super) fn check_devices(container: &At<'_>, pod: &PodParts<'_>, errors: &mut Errors) {
    let (mounts, devices) = (container.get("volumeMounts"), container.get("volumeDevices"));
    let (mount_names, mount_paths) = (texts(&mounts, "name"), texts(&mounts, "mountPath"));
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for device in devices.items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        let volume = pod.volumes.get(name.text());
        errors.need(&name);
        if !name.is_empty() && !names.insert(name.text()) {
            errors.invalid_text(&name, "must be unique");
        }
        match volume {
            None => errors.not_found(&name),
            Some(source)
                if !source.get("persistentVolumeClaim").is_set() && !source.get("ephemeral").is_set() =>
            {
                let detail =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.invalid_text(&name, detail);
            }
            Some(_) => {}
        }
        errors.need(&path);
        if climbs(path.text()) {
            errors.invalid_text(&path, "can not contain backsteps ('..')");
        } else if !paths.insert(path.text()) {
            errors.invalid_text(&path, "must be unique");
        }
        if mount_names.contains(name.text()) {
            errors.invalid_text(&name, "must not already exist in volumeMounts");
        }
        if mount_paths.contains(path.text()) {
            errors.invalid_text(&path, "must not already exist as a path in volumeMounts");
        }
    }
}
