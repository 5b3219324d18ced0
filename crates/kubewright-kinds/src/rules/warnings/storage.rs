//! Warnings of storage: volumes, claims, classes, CSI drivers.

use super::super::at::At;
use super::super::quantity::Quantity;
use super::{WarningContext, deprecated_label, of_expressions};

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const BY_FIELD: &str = "deprecated since v1.8; use \"storageClassName\" attribute instead";

/// Kinds of volumes that are gone: the field, what the warning calls it, and since when.
const GONE: [(&str, &str, &str); 6] = [
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

pub(crate) fn of_volume(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    let annotations = subject.new.dig(&["metadata", "annotations"]);
    let mount_options = "volume.beta.kubernetes.io/mount-options";
    for (key, why) in [
        (CLASS_ANNOTATION, BY_FIELD),
        (mount_options, "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ] {
        if annotations.get(key).is_set() {
            out.push(format!("{}: {why}", annotations.entry(key).path));
        }
    }
    let spec = subject.new.get("spec");
    if spec.get("persistentVolumeReclaimPolicy").text() == "Recycle" {
        out.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
    }
    for term in spec.dig(&["nodeAffinity", "required", "nodeSelectorTerms"]).items() {
        of_expressions(&term.get("matchExpressions"), out);
    }
    for (field, called, why) in GONE {
        if spec.get(field).is_set() {
            out.push(format!("spec.{called}: {why}"));
        }
    }
}

pub(crate) fn of_claim(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    let annotation = subject.new.dig(&["metadata", "annotations"]).entry(CLASS_ANNOTATION);
    if annotation.is_set() {
        out.push(format!("{}: {BY_FIELD}", annotation.path));
    }
    of_claim_spec(&subject.new.get("spec"), out);
}

pub(super) fn of_claim_spec(spec: &At<'_>, out: &mut Vec<String>) {
    for list in ["requests", "limits"] {
        of_bytes(&spec.get("resources").get(list).entry("storage"), out);
    }
}

/// A number of bytes that is none.
pub(super) fn of_bytes(at: &At<'_>, out: &mut Vec<String>) {
    if let Some(amount) = Quantity::of(at.value).filter(|amount| !amount.is_whole()) {
        out.push(format!("{}: fractional byte value \"{amount}\" is invalid, must be an integer", at.path));
    }
}

pub(crate) fn of_class(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    for topology in subject.new.get("allowedTopologies").items() {
        for key in topology.get("matchLabelExpressions").items().map(|expression| expression.get("key")) {
            if let Some(why) = deprecated_label(key.text()) {
                out.push(format!("{}: {why}", key.path));
            }
        }
    }
}

pub(crate) fn of_capacity(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    let topology = subject.new.get("nodeTopology");
    of_expressions(&topology.get("matchExpressions"), out);
    let labels = topology.get("matchLabels");
    for (key, why) in labels.entries().filter_map(|(key, _)| Some((key, deprecated_label(key)?))) {
        out.push(format!("{}.{key}: {why}", labels.path));
    }
}

pub(crate) fn of_driver(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    let spec = subject.new.get("spec");
    let requests = spec.get("tokenRequests");
    let unchanged =
        subject.old.as_ref().is_some_and(|old| old.dig(&["spec", "tokenRequests"]).same(&requests));
    if !requests.is_empty() && !unchanged && !spec.get("serviceAccountTokenInSecrets").is_set() {
        out.push("spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes".to_owned());
    }
}
