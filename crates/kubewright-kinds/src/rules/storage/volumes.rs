//! Persistent volumes.

use kubewright_meta::FieldError;
use serde_json::{Value, json};

use super::super::at::{At, same};
use super::super::errors::Errors;
use super::super::pods::{check_node_selector, volumes};
use super::super::quantity::Quantity;
use super::super::{Again, Rules, fill, resources, structs, text};
use super::{VOLUME_MODES, check_access_modes};

/// Labels of nodes that have other names now (`betaToGALabel`).
const GA_LABELS: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

/// The fields that say where the bytes are, in Kubernetes' order.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// Those that are mounted with options that an annotation may tell.
const MOUNTED: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

/// The references to secrets of a CSI volume that are looked at, in Kubernetes' order.
const SECRETS: [&str; 4] = [
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
];
const ONE_SOURCE: &str = "may not specify more than 1 volume type";

pub(crate) const fn rules() -> Rules {
    Rules {
        keeps_empty_maps: true,
        default,
        change_again: false,
        prepare_create: |volume| {
            let born = volume["metadata"]["creationTimestamp"].clone();
            fill::set(volume, "status", json!({"phase": "Pending", "lastPhaseTransitionTime": born}));
        },
        stamp: |volume, old, now| {
            let Some(old) = old.map(|old| &old["status"]) else { return };
            let Some(status) = fill::present(volume, "status") else { return };
            let since = "lastPhaseTransitionTime";
            let is_left = status.get(since).is_none_or(|time| time.is_null() || Some(time) == old.get(since));
            if status.get("phase") != old.get("phase") {
                if is_left {
                    status[since] = now.into();
                }
            } else if status.get(since).is_none_or(Value::is_null)
                && let Some(before) = old.get(since)
            {
                status[since] = before.clone();
            }
        },
        again: Again::ObjectTwice,
        validate: |volume| {
            Errors::of(|errors| {
                let volume = At::root(volume);
                check(&volume.get("spec"), errors);
                check_mount_options(&volume, errors);
            })
        },
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
                check_change(&new, &old, errors);
            })
        },
        ..Rules::none()
    }
}

fn default(volume: &mut Value) {
    if let Some(status) = fill::object(volume, "status") {
        fill::blank(status, "phase", "Pending");
    }
    let Some(spec) = fill::object(volume, "spec") else { return };
    fill::blank(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill::absent(spec, "volumeMode", "Filesystem");
    fill::canonical_map(spec, "capacity");
    if let Some(path) = fill::present(spec, "hostPath") {
        fill::absent(path, "type", "");
    }
}

/// Checks the volume that stands in an attachment instead of the name of one (`ValidatePersistentVolumeSpec` of inline volumes).
pub(super) fn check_inline(spec: &At<'_>, errors: &mut Errors) {
    const MAY_NOT: &str = "may not be specified in the context of inline volumes";
    let forbid = |key: &str, is_wrong: bool, errors: &mut Errors| {
        if is_wrong {
            errors.forbidden(&spec.get(key), MAY_NOT);
        }
    };
    forbid("claimRef", spec.get("claimRef").is_set(), errors);
    forbid("capacity", !spec.get("capacity").is_empty(), errors);
    if !spec.get("csi").is_set() {
        errors.required(&spec.get("csi"), "has to be specified in the context of inline volumes");
    }
    check_access_modes(&spec.get("accessModes"), "", errors);
    let policy = spec.get("persistentVolumeReclaimPolicy");
    if !matches!(policy.text(), "" | "Retain") {
        errors.forbidden(&policy, "may only be Retain in the context of inline volumes");
    }
    forbid("nodeAffinity", spec.get("nodeAffinity").is_set(), errors);
    check_source(spec, errors);
    forbid("storageClassName", !spec.get("storageClassName").is_empty(), errors);
    let mode = spec.get("volumeMode");
    if mode.is_set() && mode.text() != "Filesystem" {
        errors.forbidden(
            &mode,
            "may not specify volumeMode other than Filesystem in the context of inline volumes",
        );
    }
    check_attributes_class(spec, errors);
}

fn check(spec: &At<'_>, errors: &mut Errors) {
    check_access_modes(&spec.get("accessModes"), "", errors);
    let capacity = spec.get("capacity");
    errors.need(&capacity);
    if !capacity.get("storage").is_set() || capacity.len() > 1 {
        errors.push(FieldError::not_supported(&capacity.path, capacity.value.clone(), ["storage"]));
    }
    for (_, amount) in capacity.entries() {
        if let Some(bytes) = Quantity::of(amount.value).filter(|bytes| bytes.sign().is_lt()) {
            errors.invalid_as(&amount, bytes.whole(), "must be a valid resource quantity");
        }
        resources::positive(&amount, errors);
    }
    let policy = spec.get("persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        errors.one_of(&policy, &["Delete", "Recycle", "Retain"]);
    }
    check_affinity(&spec.get("nodeAffinity"), errors);
    check_source(spec, errors);
    if spec.dig(&["hostPath", "path"]).text() == "/" && policy.text() == "Recycle" {
        errors.forbidden(&policy, "may not be 'recycle' for a hostPath mount of '/'");
    }
    errors.maybe_text(&spec.get("storageClassName"), text::subdomain);
    errors.maybe_one_of(&spec.get("volumeMode"), &VOLUME_MODES);
    check_attributes_class(spec, errors);
}

fn check_attributes_class(spec: &At<'_>, errors: &mut Errors) {
    let class = spec.get("volumeAttributesClassName");
    if class.is_set() {
        if class.is_empty() {
            errors.required(&class, "an empty string is disallowed");
        }
        errors.maybe_text(&class, text::subdomain);
        if !spec.get("csi").is_set() {
            errors.required(&spec.get("csi"), "has to be specified when using volumeAttributesClassName");
        }
    }
}

/// The annotation for mount options, where a volume is not mounted with any (`checkMountOption`).
fn check_mount_options(volume: &At<'_>, errors: &mut Errors) {
    const ANNOTATION: &str = "volume.beta.kubernetes.io/mount-options";
    let (spec, annotations) = (volume.get("spec"), volume.dig(&["metadata", "annotations"]));
    if annotations.entry(ANNOTATION).is_set() && !MOUNTED.iter().any(|source| spec.get(source).is_set()) {
        let at = format!("{}.{ANNOTATION}", annotations.path);
        errors.push(FieldError::forbidden(at, "may not specify mount options for this volume type"));
    }
}

fn check_affinity(affinity: &At<'_>, errors: &mut Errors) {
    if !affinity.is_set() {
        return;
    }
    let required = affinity.get("required");
    if required.is_set() {
        check_node_selector(&required, errors);
    } else {
        errors.required(&required, "must specify required node constraints");
    }
}

fn check_source(spec: &At<'_>, errors: &mut Errors) {
    let mut given = SOURCES.iter().map(|key| (*key, spec.get(key))).filter(|(_, source)| source.is_set());
    let Some((kind, source)) = given.next() else {
        errors.required(spec, "must specify a volume type");
        return;
    };
    match kind {
        "local" => {
            if errors.need(&source.get("path"))
                && source.get("path").text().split('/').any(|part| part == "..")
            {
                errors.invalid(&source.get("path"), "must not contain '..'");
            }
            if !spec.get("nodeAffinity").is_set() {
                errors.required(&spec.get("nodeAffinity"), "Local volume requires node affinity");
            }
        }
        "csi" => {
            volumes::check_driver_name(&source.get("driver"), errors);
            errors.need(&source.get("volumeHandle"));
            for field in SECRETS {
                check_secret(&source.get(field), errors);
            }
        }
        _ => check_kind(spec, kind, &source, errors),
    }
    for (kind, other) in given {
        match kind {
            // Kubernetes forgets to refuse it.
            "flexVolume" => volumes::check_kind(kind, &other, errors),
            "cephfs" => errors.forbidden(&spec.get("cephFS"), ONE_SOURCE),
            _ => errors.forbidden(&other, ONE_SOURCE),
        }
    }
}

/// A kind of volume that pods have too, where volumes ask for something else.
fn check_kind(spec: &At<'_>, kind: &str, source: &At<'_>, errors: &mut Errors) {
    match kind {
        "gcePersistentDisk" => {
            let path = format!("{}.persistentDisk", spec.path);
            volumes::check_kind(kind, &At { path, ..source.clone() }, errors);
        }
        "iscsi" => volumes::check_iscsi(source, false, errors),
        "glusterfs" => {
            volumes::check_kind(kind, source, errors);
            let namespace = source.get("endpointsNamespace");
            if namespace.is_set() && namespace.is_empty() {
                let detail = "if the endpointnamespace is set, it must be a valid namespace name";
                errors.invalid(&namespace, detail);
            }
            errors.maybe_text(&namespace, text::label);
        }
        "azureFile" => {
            volumes::check_kind(kind, source, errors);
            let namespace = source.get("secretNamespace");
            if namespace.is_set() {
                errors.need(&namespace);
            }
        }
        _ => volumes::check_kind(kind, source, errors),
    }
    if matches!(kind, "cinder" | "storageos") && source.get("secretRef").is_set() {
        errors.need(&source.dig(&["secretRef", "namespace"]));
    }
}

/// A reference to a secret in any namespace (`validatePVSecretReference`).
fn check_secret(secret: &At<'_>, errors: &mut Errors) {
    if secret.is_set() {
        errors.need_text(&secret.get("name"), text::subdomain);
        errors.need_text(&secret.get("namespace"), text::label);
    }
}

/// An affinity to nodes with the keys of an old one where they may change: to the name that a label has now, or, of a label that never had
/// another one, to none, which is refused elsewhere (`getMaskNodeSelectorLabelChangeEqualities`).
fn with_old_keys(new: &Value, old: &Value) -> Value {
    let mut masked = new.clone();
    let old_terms = old["required"]["nodeSelectorTerms"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(Value::Array(terms)) = masked.pointer_mut("/required/nodeSelectorTerms") else { return masked };
    for (term, old) in terms.iter_mut().zip(old_terms) {
        for list in ["matchExpressions", "matchFields"] {
            let Some(Value::Array(requirements)) = term.get_mut(list) else { continue };
            for (requirement, old) in requirements.iter_mut().zip(old[list].as_array().into_iter().flatten())
            {
                let key = |of: &Value| of["key"].as_str().unwrap_or_default().to_owned();
                let (now, then) = (key(requirement), key(old));
                let renamed = GA_LABELS.iter().find(|(beta, _)| *beta == then).map_or("", |(_, ga)| ga);
                if renamed == now {
                    fill::set(requirement, "key", then);
                }
            }
        }
    }
    masked
}

fn check_change(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    // The secret for resizing may be added later.
    let sources = |spec: &At<'_>, with_secret: bool| -> Value {
        let source = |key: &&str| {
            let mut source = spec.get(key).value.clone();
            if !with_secret {
                fill::remove(&mut source, "controllerExpandSecretRef");
            }
            source
        };
        SOURCES.iter().map(source).collect()
    };
    let had = old.dig(&["csi", "controllerExpandSecretRef"]).is_set();
    if !same(&sources(new, had), &sources(old, had)) {
        let place = format!("{}.persistentvolumesource", new.path);
        let difference = structs::difference("core.PersistentVolumeSource", old.value, new.value);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.push(FieldError::forbidden(place, detail));
    }
    let mode = At { path: "volumeMode".to_owned(), ..new.get("volumeMode") };
    errors.immutable(&mode, &old.get("volumeMode"));
    let affinity = At { path: "nodeAffinity".to_owned(), ..new.get("nodeAffinity") };
    let before = old.get("nodeAffinity");
    if before.is_set() && !same(&with_old_keys(affinity.value, before.value), before.value) {
        let detail = "field is immutable, except for updating from beta label to GA";
        let error = FieldError::invalid(&affinity.path, Value::Null, detail);
        errors.push(error.printed(structs::of_type("*core.VolumeNodeAffinity", affinity.value)));
    }
    let class = new.get("volumeAttributesClassName");
    if old.get("volumeAttributesClassName").is_set() && !class.is_set() {
        errors.forbidden(&class, "update from non-nil value to nil is forbidden");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_of_an_affinity_may_get_the_name_that_it_has_now() {
        let zone = |key: &str| {
            let requirement = json!({"key": key, "operator": "In", "values": ["a"]});
            json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}})
        };
        let is_same = |new: &str, old: &str| {
            let (new, old) = (zone(new), zone(old));
            Errors::of(|errors| check_change(&At::named("spec", &new), &At::named("spec", &old), errors))
                .is_empty()
        };
        let (beta, ga) = GA_LABELS[0];
        assert!(is_same(ga, beta) && is_same("x", "x"));
        assert!(!is_same(beta, ga) && !is_same("y", "x") && !is_same("", beta));
        assert!(is_same("", "x"), "an empty name is refused as one, and not as a change");
    }
}
