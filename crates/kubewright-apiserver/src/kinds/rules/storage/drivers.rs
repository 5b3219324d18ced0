//! What CSI drivers tell of themselves: drivers, their nodes, attachments and capacities.

use std::collections::BTreeSet;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::pods::volumes::check_driver_name;
use super::super::{Again, Generation, Rules, fill, resources, selector, text};

/// The rules of CSI drivers.
pub(crate) fn drivers() -> Rules {
    Rules {
        default: |driver| {
            let Some(spec) = fill::object(driver, "spec") else { return };
            fill::absent(spec, "attachRequired", true);
            for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
                fill::absent(spec, field, false);
            }
            fill::absent(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
            if At::root(spec).get("volumeLifecycleModes").is_empty() {
                fill::set(spec, "volumeLifecycleModes", serde_json::json!(["Persistent"]));
            }
        },
        generation: Generation::Content,
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
    for mode in spec.get("volumeLifecycleModes").items() {
        errors.one_of(&mode, &["Ephemeral", "Persistent"]);
    }
    let requests = spec.get("tokenRequests");
    let mut audiences = BTreeSet::new();
    for request in requests.items() {
        let (audience, lifetime) = (request.get("audience"), request.get("expirationSeconds"));
        if !audiences.insert(audience.text()) {
            errors.duplicate(&audience);
        }
        if lifetime.number().is_some_and(|seconds| seconds < 10 * 60) {
            errors.invalid(&lifetime, "may not specify a duration less than 10 minutes");
        }
    }
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    if period.number().is_some_and(|seconds| seconds < 10) {
        errors.invalid(&period, "must be greater than or equal to 10 seconds");
    }
}

/// The rules of CSI nodes.
pub(crate) fn nodes() -> Rules {
    Rules {
        default: |node| {
            if let Some(spec) = fill::object(node, "spec") {
                fill::absent(spec, "drivers", serde_json::Value::Null);
            }
        },
        again: Again::Metadata,
        validate: |node| Errors::of(|errors| check_node(&At::root(node).dig(&["spec", "drivers"]), errors)),
        validate_update: |new, _| {
            Errors::of(|errors| check_node(&At::root(new).dig(&["spec", "drivers"]), errors))
        },
        ..Rules::none()
    }
}

fn check_node(drivers: &At<'_>, errors: &mut Errors) {
    for driver in drivers.items() {
        check_driver_name(&driver.get("name"), errors);
        let id = driver.get("nodeID");
        errors.need(&id);
        if id.text().len() > 256 {
            errors.invalid(&id, "must be 256 characters or less");
        }
        errors.non_negative(&driver.dig(&["allocatable", "count"]));
        for key in driver.get("topologyKeys").items() {
            errors.need_text(&At { path: driver.path.clone(), ..key }, text::label_key);
        }
    }
    errors.unique(drivers, "name");
}

/// The rules of volume attachments.
pub(crate) fn attachments() -> Rules {
    Rules {
        default: |attachment| {
            if let Some(status) = fill::object(attachment, "status") {
                fill::absent(status, "attached", false);
            }
        },
        prepare_create: |attachment| fill::set(attachment, "status", serde_json::json!({"attached": false})),
        again: Again::Metadata,
        validate: |attachment| {
            Errors::of(|errors| check_attachment(&At::root(attachment).get("spec"), errors))
        },
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
                check_attachment(&new, errors);
                errors.immutable(&new, &old);
            })
        },
        ..Rules::none()
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
        _ => {}
    }
    errors.text(&spec.get("nodeName"), text::subdomain);
    errors.maybe_text(&name, text::subdomain);
}

/// The rules of CSI storage capacities.
pub(crate) fn capacities() -> Rules {
    Rules {
        default: |capacity| {
            fill::canonical(capacity, "capacity");
            fill::canonical(capacity, "maximumVolumeSize");
        },
        again: Again::Object,
        validate: |capacity| {
            Errors::of(|errors| {
                let capacity = At::root(capacity);
                errors.text(&capacity.get("storageClassName"), text::subdomain);
                for field in ["capacity", "maximumVolumeSize"] {
                    resources::non_negative(&capacity.get(field), errors);
                }
                selector::check(&capacity.get("nodeTopology"), errors);
            })
        },
        validate_update: |new, old| {
            Errors::of(|errors| {
                for field in ["nodeTopology", "storageClassName"] {
                    errors.immutable(&At::root(new).get(field), &At::root(old).get(field));
                }
            })
        },
        ..Rules::none()
    }
}
