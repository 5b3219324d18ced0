//! The volumes of a pod: defaults, and that each has exactly one good source (`ValidateVolumes`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::quantity::Quantity;
use super::super::storage::claims;
use super::super::{fill, text};
use super::paths::{check_descending, check_mode, check_no_backsteps, check_not_reserved};
use super::{defaults, env, projected};

type Check = fn(&At<'_>, &mut Errors);

/// The kinds of volumes in Kubernetes' order: the field, what errors call it inside (two differ), and its check.
const SOURCES: [(&str, &str, Check); 30] = [
    ("emptyDir", "emptyDir", check_empty_dir),
    ("hostPath", "hostPath", check_host_path),
    ("gitRepo", "gitRepo", check_git_repo),
    ("gcePersistentDisk", "persistentDisk", |at, errors| check_disk(at, "pdName", errors)),
    ("awsElasticBlockStore", "awsElasticBlockStore", |at, errors| check_disk(at, "volumeID", errors)),
    ("secret", "secret", |at, errors| check_keys(at, "secretName", errors)),
    ("nfs", "nfs", check_nfs),
    ("iscsi", "iscsi", |at, errors| {
        check_iscsi(at, true, errors);
    }),
    ("glusterfs", "glusterfs", |at, errors| need_all(at, &["endpoints", "path"], errors)),
    ("flocker", "flocker", check_flocker),
    ("persistentVolumeClaim", "persistentVolumeClaim", |at, errors| need_all(at, &["claimName"], errors)),
    ("rbd", "rbd", |at, errors| need_all(at, &["monitors", "image"], errors)),
    ("cinder", "cinder", |at, errors| need_with_secret(at, "volumeID", errors)),
    ("cephfs", "cephfs", |at, errors| need_all(at, &["monitors"], errors)),
    ("quobyte", "quobyte", check_quobyte),
    ("downwardAPI", "downwardAPI", check_downward_api),
    ("fc", "fc", check_fibre_channel),
    ("flexVolume", "flexVolume", check_flex),
    ("configMap", "configMap", |at, errors| check_keys(at, "name", errors)),
    ("azureFile", "azureFile", |at, errors| need_all(at, &["secretName", "shareName"], errors)),
    ("vsphereVolume", "vsphereVolume", |at, errors| need_all(at, &["volumePath"], errors)),
    ("photonPersistentDisk", "photonPersistentDisk", |at, errors| need_all(at, &["pdID"], errors)),
    ("portworxVolume", "portworxVolume", |at, errors| need_all(at, &["volumeID"], errors)),
    ("azureDisk", "azureDisk", check_azure_disk),
    ("storageos", "storageos", check_storage_os),
    ("projected", "projected", projected::check),
    ("scaleIO", "scaleIO", |at, errors| need_all(at, &["gateway", "system", "volumeName"], errors)),
    ("csi", "csi", check_csi),
    ("ephemeral", "ephemeral", check_ephemeral),
    ("image", "image", |at, errors| {
        errors.need_one_of(&at.get("pullPolicy"), &["Always", "IfNotPresent", "Never"]);
    }),
];

/// The defaults of one volume.
pub(super) fn default(volume: &mut Value) {
    let Some(fields) = volume.as_object() else { return };
    let has_source = SOURCES.iter().any(|(key, ..)| fields.get(*key).is_some_and(|source| !source.is_null()));
    if !has_source {
        fill::object(volume, "emptyDir");
    }
    if let Some(empty) = fill::present(volume, "emptyDir") {
        fill::canonical(empty, "sizeLimit");
    }
    if let Some(path) = fill::present(volume, "hostPath") {
        fill::absent(path, "type", "");
    }
    for key in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = fill::present(volume, key) {
            fill::absent(source, "defaultMode", 0o644);
            fill::each(source, "items", default_item);
        }
    }
    if let Some(projected) = fill::present(volume, "projected") {
        fill::each(projected, "sources", default_projection);
    }
    if let Some(template) = fill::reach(volume, &["ephemeral", "volumeClaimTemplate"]) {
        fill::object(template, "metadata");
        claims::default_spec(template);
    }
    if let Some(image) = fill::present(volume, "image") {
        let policy =
            defaults::pull_policy(image.get("reference").and_then(Value::as_str).unwrap_or_default());
        fill::blank(image, "pullPolicy", policy);
    }
    default_old_kinds(volume);
}

fn default_item(item: &mut Value) {
    if let Some(field) = fill::present(item, "fieldRef") {
        fill::blank(field, "apiVersion", "v1");
    }
    if let Some(resource) = fill::present(item, "resourceFieldRef") {
        defaults::divisor(resource);
    }
}

fn default_projection(source: &mut Value) {
    if let Some(api) = fill::present(source, "downwardAPI") {
        fill::each(api, "items", default_item);
    }
    if let Some(token) = fill::present(source, "serviceAccountToken") {
        fill::absent(token, "expirationSeconds", 3600);
    }
}

fn default_old_kinds(volume: &mut Value) {
    if let Some(iscsi) = fill::present(volume, "iscsi") {
        fill::blank(iscsi, "iscsiInterface", "default");
    }
    if let Some(rbd) = fill::present(volume, "rbd") {
        for (key, value) in [("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")] {
            fill::blank(rbd, key, value);
        }
    }
    if let Some(disk) = fill::present(volume, "azureDisk") {
        for (key, value) in [("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("kind", "Shared")] {
            fill::absent(disk, key, value);
        }
        fill::absent(disk, "readOnly", false);
    }
    if let Some(scale_io) = fill::present(volume, "scaleIO") {
        fill::blank(scale_io, "storageMode", "ThinProvisioned");
        fill::blank(scale_io, "fsType", "xfs");
    }
}

/// Checks the volumes. Returns the good ones, by name: what mounts may refer to. `pod` is the pod's name, or empty in
/// a template.
pub(super) fn check<'a>(volumes: &At<'a>, pod: &str, errors: &mut Errors) -> BTreeMap<&'a str, At<'a>> {
    let made: BTreeSet<String> = volumes
        .items()
        .filter(|volume| !pod.is_empty() && volume.get("ephemeral").is_set())
        .map(|volume| format!("{pod}-{}", volume.get("name").text()))
        .collect();
    let mut good: BTreeMap<&str, At<'_>> = BTreeMap::new();
    for volume in volumes.items() {
        let before = errors.count();
        check_source(&volume, pod, errors);
        let name = volume.get("name");
        errors.need_text(&name, text::label);
        if good.contains_key(name.text()) {
            errors.duplicate(&name);
        }
        if errors.count() == before {
            good.insert(name.text(), volume.clone());
        }
        let claim = volume.dig(&["persistentVolumeClaim", "claimName"]);
        if made.contains(claim.text()) {
            errors.invalid(&claim, "must not reference a PVC that gets created for an ephemeral volume");
        }
    }
    good
}

/// `pod` is the pod's name, or empty in a template.
fn check_source(volume: &At<'_>, pod: &str, errors: &mut Errors) {
    let mut given = SOURCES.iter().filter(|(key, ..)| volume.get(key).is_set());
    let Some((key, inside, check)) = given.next() else {
        errors.required(volume, "must specify a volume type");
        return;
    };
    check(&At { path: format!("{}.{inside}", volume.path), ..volume.get(key) }, errors);
    let name = volume.get("name");
    match *key {
        // A template may leave the image to others.
        "image" if !pod.is_empty() => drop(errors.need(&volume.dig(&["image", "reference"]))),
        "iscsi" if volume.dig(&["iscsi", "initiatorName"]).is_set() => {
            let portal = volume.dig(&["iscsi", "targetPortal"]).text();
            if name.text().len() + 1 + portal.len() > 64 {
                errors.invalid(&name, "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.");
            }
        }
        "ephemeral" if !pod.is_empty() && !name.is_empty() => {
            let claim = format!("{pod}-{}", name.text());
            for message in text::subdomain(&claim) {
                errors.invalid(&name, format!("PVC name {claim:?}: {message}"));
            }
        }
        _ => {}
    }
    for (key, ..) in given {
        // Two are called otherwise here.
        let called = match *key {
            "cephfs" => "cephFS",
            "downwardAPI" => "downwarAPI",
            other => other,
        };
        errors.forbidden(&volume.get(called), "may not specify more than 1 volume type");
    }
}

/// Checks a source that persistent volumes share with the volumes of pods, by the name of its field.
pub(crate) fn check_kind(kind: &str, source: &At<'_>, errors: &mut Errors) {
    if let Some((.., check)) = SOURCES.iter().find(|(key, ..)| *key == kind) {
        check(source, errors);
    }
}

fn need_all(at: &At<'_>, fields: &[&str], errors: &mut Errors) {
    for field in fields {
        errors.need(&at.get(field));
    }
}

fn need_with_secret(at: &At<'_>, field: &str, errors: &mut Errors) {
    errors.need(&at.get(field));
    let secret = at.get("secretRef");
    if secret.is_set() {
        errors.need(&secret.get("name"));
    }
}

fn check_empty_dir(at: &At<'_>, errors: &mut Errors) {
    let limit = at.get("sizeLimit");
    if Quantity::of(limit.value).is_some_and(|limit| limit.sign().is_lt()) {
        errors.forbidden(&limit, "SizeLimit field must be a valid resource quantity");
    }
}

fn check_host_path(at: &At<'_>, errors: &mut Errors) {
    if errors.need(&at.get("path")) {
        check_no_backsteps(&at.get("path"), errors);
        let types = [
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ];
        errors.maybe_one_of(&at.get("type"), &types);
    }
}

fn check_git_repo(at: &At<'_>, errors: &mut Errors) {
    errors.need(&at.get("repository"));
    check_descending(&at.get("directory"), errors);
}

fn check_disk(at: &At<'_>, id: &str, errors: &mut Errors) {
    errors.need(&at.get(id));
    if at.get("partition").number().is_some_and(|partition| !(0..=255).contains(&partition)) {
        errors.invalid(&at.get("partition"), "must be between 1 and 255, inclusive");
    }
}

/// A Secret or ConfigMap as files.
fn check_keys(at: &At<'_>, name: &str, errors: &mut Errors) {
    errors.need(&at.get(name));
    check_mode(&at.get("defaultMode"), errors);
    for item in at.get("items").items() {
        check_key_to_path(&item, errors);
    }
}

/// One key as a file (`validateKeyToPath`).
pub(super) fn check_key_to_path(item: &At<'_>, errors: &mut Errors) {
    errors.need(&item.get("key"));
    errors.need(&item.get("path"));
    check_not_reserved(&item.get("path"), errors);
    check_mode(&item.get("mode"), errors);
}

fn check_nfs(at: &At<'_>, errors: &mut Errors) {
    need_all(at, &["server", "path"], errors);
    if !at.get("path").text().starts_with('/') {
        errors.invalid_text(&at.get("path"), "must be an absolute path");
    }
}

/// An iSCSI volume, of a pod or of a persistent volume.
pub(crate) fn check_iscsi(at: &At<'_>, of_pod: bool, errors: &mut Errors) {
    // A name of no known kind is told in other words.
    let other =
        if of_pod { "must be valid format starting with iqn, eui, or naa" } else { "must be valid format" };
    errors.need(&at.get("targetPortal"));
    let iqn = at.get("iqn");
    if errors.need(&iqn) {
        check_iscsi_name(&iqn, other, errors);
    }
    errors.within(&at.get("lun"), 0, 255);
    let secured = at.get("chapAuthDiscovery").is_true() || at.get("chapAuthSession").is_true();
    if secured && !at.get("secretRef").is_set() {
        errors.required(&at.get("secretRef"), "");
    }
    if !of_pod && at.get("secretRef").is_set() {
        errors.need(&at.dig(&["secretRef", "name"]));
    }
    let initiator = at.get("initiatorName");
    if initiator.is_set() {
        check_iscsi_name(&At { path: at.get("initiatorname").path, ..initiator }, other, errors);
    }
}

fn check_iscsi_name(name: &At<'_>, other: &str, errors: &mut Errors) {
    let alphanumeric = |start: &str, count: usize| {
        // The character after the start may be any.
        name.text().strip_prefix(start).is_some_and(|rest| {
            let mut rest = rest.chars();
            let separator = rest.next().is_some_and(|one| one != '\n');
            separator && rest.as_str().len() == count && rest.all(|one| one.is_ascii_alphanumeric())
        })
    };
    let good = match name.text().get(..3) {
        Some("iqn") => has_iqn(name.text()),
        Some("eui") => alphanumeric("eui", 16),
        Some("naa") => alphanumeric("naa", 32),
        _ => {
            errors.invalid(name, other);
            return;
        }
    };
    if !good {
        errors.invalid(name, "must be valid format");
    }
}

/// Whether a text ends in `iqn.<year>-<month>.<reversed domain>:<name>`.
fn has_iqn(text: &str) -> bool {
    let is_one = |rest: &str| {
        let bytes = rest.as_bytes();
        let dated = bytes.len() > 8
            && bytes[..4].iter().all(u8::is_ascii_digit)
            && bytes[4] == b'-'
            && bytes[5..7].iter().all(u8::is_ascii_digit)
            && bytes[7] == b'.';
        let good = |name: &str| {
            !name.is_empty()
                && !name.contains(|one: char| ",;*&$|".contains(one) || one.is_ascii_whitespace())
        };
        let domain = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|one| one.is_ascii_alphanumeric() || one == b'-' || one == b'.')
        };
        dated
            && rest
                .get(8..)
                .and_then(|rest| rest.split_once(':'))
                .is_some_and(|(at, name)| domain(at) && good(name))
    };
    text.match_indices("iqn.").any(|(start, _)| is_one(&text[start + 4..]))
}

fn check_quobyte(at: &At<'_>, errors: &mut Errors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = at.get("registry");
    if registry.is_empty() {
        errors.required(&registry, PAIRS);
    } else if at.get("tenant").text().len() >= 65 {
        errors.required(&at.get("tenant"), "must be a UUID and may not exceed a length of 64 characters");
    } else {
        for _ in registry.text().split(',').filter(|pair| !is_host_and_port(pair)) {
            errors.invalid(&registry, PAIRS);
        }
    }
    errors.need(&at.get("volume"));
}

/// Whether Go's `net.SplitHostPort` can split it.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').is_some_and(|inner| !inner.contains(['[', ']'])),
        None => !host.contains([':', '[', ']']) && !port.contains(['[', ']']),
    }
}

fn check_flex(at: &At<'_>, errors: &mut Errors) {
    errors.need(&at.get("driver"));
    for (key, entry) in at.get("options").entries() {
        let domain = format!(".{}", key.split('/').next().unwrap_or_default().to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            errors.invalid_as(&entry, key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

fn check_storage_os(at: &At<'_>, errors: &mut Errors) {
    errors.need_text(&at.get("volumeName"), text::label);
    errors.maybe_text(&at.get("volumeNamespace"), text::label);
    let secret = at.get("secretRef");
    if secret.is_set() {
        errors.need(&secret.get("name"));
    }
}

fn check_flocker(at: &At<'_>, errors: &mut Errors) {
    let (name, uuid) = (at.get("datasetName"), at.get("datasetUUID"));
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => errors.required(at, "one of datasetName and datasetUUID is required"),
        (false, false) => {
            errors.invalid_as(
                at,
                "resource",
                "datasetName and datasetUUID can not be specified simultaneously",
            );
        }
        _ => {}
    }
    if name.text().contains('/') {
        errors.invalid(&name, "must not contain '/'");
    }
}

/// Items of the downward API: the errors name the volume and not the item.
fn check_downward_api(at: &At<'_>, errors: &mut Errors) {
    check_mode(&at.get("defaultMode"), errors);
    for item in at.get("items").items() {
        check_downward_item(&At { path: at.path.clone(), ..item }, errors);
    }
}

/// One file of a downward API volume (`validateDownwardAPIVolumeFile`).
pub(super) fn check_downward_item(item: &At<'_>, errors: &mut Errors) {
    errors.need(&item.get("path"));
    check_not_reserved(&item.get("path"), errors);
    let (field, resource) = (item.get("fieldRef"), item.get("resourceFieldRef"));
    if field.is_set() {
        env::check_field(&field, &env::VOLUME_FIELDS, errors);
        if resource.is_set() {
            errors.invalid_as(
                item,
                "resource",
                "fieldRef and resourceFieldRef can not be specified simultaneously",
            );
        }
    } else if resource.is_set() {
        env::check_resource(&resource, true, errors);
    } else {
        errors.required(item, "one of fieldRef and resourceFieldRef is required");
    }
    check_mode(&item.get("mode"), errors);
}

fn check_fibre_channel(at: &At<'_>, errors: &mut Errors) {
    let (targets, ids, lun) = (at.get("targetWWNs"), at.get("wwids"), at.get("lun"));
    if targets.is_empty() && ids.is_empty() {
        errors.required(&targets, "must specify either targetWWNs or wwids, but not both");
    }
    if !targets.is_empty() && !ids.is_empty() {
        errors.invalid(&targets, "targetWWNs and wwids can not be specified simultaneously");
    }
    if !targets.is_empty() {
        if !lun.is_set() {
            errors.required(&lun, "lun is required if targetWWNs is specified");
        }
        errors.within(&lun, 0, 255);
    }
}

fn check_azure_disk(at: &At<'_>, errors: &mut Errors) {
    need_all(at, &["diskName", "diskURI"], errors);
    errors.maybe_one_of(&at.get("cachingMode"), &["None", "ReadOnly", "ReadWrite"]);
    let (kind, uri) = (at.get("kind"), at.get("diskURI"));
    errors.maybe_one_of(&kind, &["Dedicated", "Managed", "Shared"]);
    let (start, example) = if kind.text() == "Managed" {
        (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        )
    } else {
        ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd")
    };
    if kind.is_set() && !uri.text().starts_with(start) {
        errors.not_supported(&uri, &[example]);
    }
}

fn check_csi(at: &At<'_>, errors: &mut Errors) {
    check_driver_name(&at.get("driver"), errors);
    let secret = at.get("nodePublishSecretRef");
    if secret.is_set() && errors.need(&secret.get("name")) {
        errors.text(&At { path: at.get("name").path, ..secret.get("name") }, text::subdomain);
    }
}

/// The name of a CSI driver (`ValidateCSIDriverName`).
pub(crate) fn check_driver_name(driver: &At<'_>, errors: &mut Errors) {
    if !errors.need(driver) {
        return;
    }
    if driver.text().len() > 63 {
        errors.push(kubewright_meta::FieldError::too_long(&driver.path, 63));
    }
    for message in text::subdomain(&driver.text().to_lowercase()) {
        errors.invalid(driver, message);
    }
}

fn check_ephemeral(at: &At<'_>, errors: &mut Errors) {
    let template = at.get("volumeClaimTemplate");
    if !template.is_set() {
        errors.required(&template, "");
        return;
    }
    check_template_metadata(&template.get("metadata"), errors);
    claims::check_spec(&template.get("spec"), errors);
}

/// The fields of metadata that a template may not set, in the order of Go's struct.
const NOT_IN_TEMPLATES: [&str; 13] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// The metadata that objects get which are made of a template (`ValidateTemplateObjectMeta`).
pub(crate) fn check_template_metadata(metadata: &At<'_>, errors: &mut Errors) {
    super::super::metadata::check_annotations(&metadata.get("annotations"), errors);
    super::super::selector::check_labels(&metadata.get("labels"), errors);
    for field in NOT_IN_TEMPLATES.iter().filter(|field| metadata.get(field).is_set()) {
        // Go's name, its first letter lowered.
        let called = if *field == "uid" { "uID" } else { field };
        errors.forbidden(&metadata.get(called), "cannot be set");
    }
}
