//! What CSI drivers tell of themselves: drivers, their nodes, attachments and capacities.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::{Errors, IMMUTABLE};
use super::super::pods::volumes::check_driver_name;
use super::super::printed;
use super::super::{
    Again, Generation, NameRule, Rules, fill, metadata, resources, selector, structs, text, version,
};

/// A field of drivers from v1.36 on, and the gate that is on from v1.37.
const PREVENT_SCHEDULING: &str = "preventPodSchedulingIfMissing";
const LIMIT_SCALING: &str = "VolumeLimitScaling";

/// The rules of CSI drivers.
pub(crate) const fn drivers() -> Rules {
    Rules {
        default: |driver| {
            let Some(spec) = fill::object(driver, "spec") else { return };
            fill::absent(spec, "attachRequired", true);
            for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
                fill::absent(spec, field, false);
            }
            if version::has_feature(LIMIT_SCALING) {
                fill::absent(spec, PREVENT_SCHEDULING, false);
            }
            fill::absent(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
            if At::root(spec).get("volumeLifecycleModes").is_empty() {
                fill::set(spec, "volumeLifecycleModes", serde_json::json!(["Persistent"]));
            }
        },
        prepare_create: |driver| {
            if let Some(spec) = fill::present(driver, "spec").filter(|_| !version::has_feature(LIMIT_SCALING))
            {
                fill::remove(spec, PREVENT_SCHEDULING);
            }
        },
        prepare_update: |new, old| {
            let had = At::root(old).dig(&["spec", PREVENT_SCHEDULING]).is_set();
            let is_there = had || version::has_feature(LIMIT_SCALING);
            if let Some(spec) = fill::present(new, "spec").filter(|_| !is_there) {
                fill::remove(spec, PREVENT_SCHEDULING);
            }
        },
        generation: Generation::ContentOfOld,
        validate: |driver| Errors::of(|errors| check_driver(&At::root(driver).get("spec"), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
                check_driver(&new, errors);
                let attach = At { path: "spec.attachedRequired".to_owned(), ..new.get("attachRequired") };
                errors.immutable(&attach, &old.get("attachRequired"));
                errors.immutable(&new.get("volumeLifecycleModes"), &old.get("volumeLifecycleModes"));
            })
        },
        ..Rules::none()
    }
}

fn check_driver(spec: &At<'_>, errors: &mut Errors) {
    errors.maybe_one_of(&spec.get("fsGroupPolicy"), &["File", "None", "ReadWriteOnceWithFSType"]);
    let requests = spec.get("tokenRequests");
    let mut audiences = BTreeSet::new();
    for request in requests.items() {
        let (audience, lifetime) = (request.get("audience"), request.get("expirationSeconds"));
        if !audiences.insert(audience.text()) {
            errors.push(FieldError::duplicate(&audience.path, audience.text()));
            continue;
        }
        let seconds = lifetime.number();
        if seconds.is_some_and(|seconds| seconds < 10 * 60) {
            errors.invalid(&lifetime, "may not specify a duration less than 10 minutes");
        }
        if seconds.is_some_and(|seconds| seconds > 1 << 32) {
            errors.invalid(&lifetime, "may not specify a duration larger than 2^32 seconds");
        }
    }
    let modes = spec.get("volumeLifecycleModes");
    for mode in modes.items() {
        errors.one_of(&At { path: modes.path.clone(), ..mode }, &["Persistent", "Ephemeral"]);
    }
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    if period.number().is_some_and(|seconds| seconds < 10) {
        errors.invalid(&period, "must be greater than or equal to 10 seconds");
    }
    let in_secrets = spec.get("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && requests.is_empty() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.invalid(&in_secrets, detail);
    }
}

/// The rules of CSI nodes.
pub(crate) const fn nodes() -> Rules {
    Rules {
        default: |node| {
            if let Some(spec) = fill::object(node, "spec") {
                fill::absent(spec, "drivers", serde_json::Value::Null);
            }
            // The feature CSIVolumeHealth is off; before v1.37 there is no status at all.
            if let Some(status) = fill::present(node, "status") {
                fill::remove(status, "storageHealth");
            }
        },
        prepare_create: |node| {
            if fill::present(node, "status").is_some() {
                fill::set(node, "status", serde_json::json!({}));
            }
        },
        // Up to v1.35 an update told what is wrong with an object twice.
        again: Again::Object,
        validate: |node| Errors::of(|errors| check_node(&At::root(node).dig(&["spec", "drivers"]), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                let drivers = At::root(new).dig(&["spec", "drivers"]);
                check_node(&drivers, errors);
                check_kept_drivers(&drivers, &At::root(old).dig(&["spec", "drivers"]), errors);
            })
        },
        ..Rules::none()
    }
}

fn check_node(drivers: &At<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for driver in drivers.items() {
        check_driver_name(&driver.get("name"), errors);
        let id = driver.get("nodeID");
        errors.need(&id);
        if id.text().len() > 256 {
            errors.invalid(&id, "must be 256 characters or less");
        }
        errors.non_negative(&driver.dig(&["allocatable", "count"]));
        if !names.insert(driver.get("name").text()) {
            errors.duplicate(&driver.get("name"));
        }
        let mut keys = BTreeSet::new();
        for key in driver.get("topologyKeys").items() {
            let key = At { path: driver.path.clone(), ..key };
            errors.need(&key);
            if !keys.insert(key.text()) {
                errors.duplicate(&key);
            }
            errors.text(&key, text::label_key);
        }
    }
}

/// A driver stays what it was, but for what it can attach.
fn check_kept_drivers(drivers: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let fixed = ["name", "nodeID", "topologyKeys"];
    let is_kept = |new: &At<'_>, old: &At<'_>| fixed.iter().all(|field| new.get(field).same(&old.get(field)));
    for old in old.items() {
        let named = drivers.items().filter(|driver| driver.get("name").text() == old.get("name").text());
        for driver in named.filter(|driver| !is_kept(driver, &old)) {
            let [name, id, keys] = fixed.map(|field| driver.get(field).value);
            let error = FieldError::invalid(&drivers.path, serde_json::Value::Null, IMMUTABLE);
            errors.push(error.printed(format!(
                "{{\"Name\":{name},\"NodeID\":{id},\"TopologyKeys\":{keys},\"Allocatable\":null}}"
            )));
        }
    }
}

/// The rules of volume attachments.
pub(crate) const fn attachments() -> Rules {
    Rules {
        default: |attachment| {
            if let Some(status) = fill::object(attachment, "status") {
                fill::absent(status, "attached", false);
            }
        },
        prepare_create: |attachment| fill::set(attachment, "status", serde_json::json!({"attached": false})),
        again: Again::Metadata,
        change_again: false,
        status_change_again: false,
        validate: |attachment| {
            Errors::of(|errors| check_attachment(&At::root(attachment).get("spec"), errors))
        },
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
                check_attachment(&new, errors);
                if !new.same(&old) {
                    let error = FieldError::invalid(&new.path, Value::Null, IMMUTABLE);
                    errors.push(error.printed(structs::of_type("storage.VolumeAttachmentSpec", new.value)));
                }
            })
        },
        // A write to the status is judged as one to the object.
        validate_status: |new, _| {
            let mut errors = metadata::validate(new, NameRule::Subdomain, false);
            errors.extend(metadata::validate_finalizers(new));
            errors.extend(Errors::of(|errors| {
                let attachment = At::root(new);
                check_attachment(&attachment.get("spec"), errors);
                for field in ["attachError", "detachError"] {
                    check_failure(&attachment.dig(&["status", field]), errors);
                }
            }));
            errors
        },
        ..Rules::none()
    }
}

fn check_failure(failure: &At<'_>, errors: &mut Errors) {
    let (message, code) = (failure.get("message"), failure.get("errorCode"));
    if message.text().len() > 1024 {
        errors.push(FieldError::too_long(&message.path, 256 * 1024));
    }
    if code.number().is_some_and(|code| code < 0) {
        errors.invalid(&code, "must be between 0 and 2147483647, inclusive");
    }
}

fn check_attachment(spec: &At<'_>, errors: &mut Errors) {
    check_driver_name(&spec.get("attacher"), errors);
    let source = spec.get("source");
    let (inline, name) = (source.get("inlineVolumeSpec"), source.get("persistentVolumeName"));
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline.is_set(), name.is_set()) {
        (false, false) => errors.required(&source, ONE),
        (true, true) => errors.forbidden(&source, ONE),
        (false, true) if name.is_empty() => {
            errors.required(&name, "must specify non empty persistentVolumeName");
        }
        (true, false) => super::volumes::check_inline(&inline, errors),
        (false, true) => {}
    }
    errors.text(&spec.get("nodeName"), text::subdomain);
    if name.is_set() {
        errors.text(&name, text::subdomain);
    }
}

/// The rules of CSI storage capacities.
pub(crate) const fn capacities() -> Rules {
    Rules {
        default: |capacity| {
            fill::canonical(capacity, "capacity");
            fill::canonical(capacity, "maximumVolumeSize");
        },
        again: Again::Object,
        validate: |capacity| {
            Errors::of(|errors| {
                let capacity = At::root(capacity);
                selector::check(&capacity.get("nodeTopology"), errors);
                errors.text(&capacity.get("storageClassName"), text::subdomain);
                resources::non_negative(&capacity.get("capacity"), errors);
            })
        },
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new), At::root(old));
                let topology = new.get("nodeTopology");
                if !topology.same(&old.get("nodeTopology")) {
                    let error = FieldError::invalid(&topology.path, Value::Null, IMMUTABLE);
                    errors.push(error.printed(printed::selector(topology.value)));
                }
                errors.immutable(&new.get("storageClassName"), &old.get("storageClassName"));
            })
        },
        ..Rules::none()
    }
}
