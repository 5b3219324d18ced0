//! Resource slices: the devices of a pool.

use kubewright_meta::{FieldError, object};
use kubewright_spec::Version;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::pods::check_node_selector;
use super::super::pods::volumes::check_driver_name;
use super::super::version::{has_feature, since};
use super::super::warnings::WarningContext;
use super::super::{Generation, Rules, fill, text};
use super::{any_has, by_name, capacity, check_list, check_set, names, shapes, taints};

/// How many there may be of each.
const DEVICES: usize = 128;
/// Where devices have taints, or take of counters.
const ADVANCED_DEVICES: usize = 64;
const COUNTER_SETS: usize = 8;
const COUNTERS: usize = 32;
const CONSUMED: usize = 2;
const ENTRIES: usize = 32;
const VALUES: usize = 48;
const TAINTS: usize = 16;
const CONDITIONS: usize = 4;

const WAYS: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
const WAYS_OF_DEVICE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";

pub(crate) const fn rules() -> Rules {
    Rules {
        prepare_create: |slice| drop_disabled(slice, None),
        prepare_update: |new, old| {
            // A change counts also where it is of fields that are dropped.
            let was = object::generation(old);
            let counts = Generation::Content.raised(new, old);
            object::set_meta(new, "generation", Some((was + i64::from(counts)).into()));
            drop_disabled(new, Some(old));
        },
        stamp: |slice, _, now| {
            if let Some(spec) = fill::present(slice, "spec") {
                fill::each(spec, "devices", |device| {
                    fill::each(device, "taints", |taint| fill::absent(taint, "timeAdded", now));
                });
            }
        },
        generation: Generation::Content,
        validate: |slice| Errors::of(|errors| check(&At::root(slice).get("spec"), None, errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                check(&At::root(new).get("spec"), Some(&At::root(old).get("spec")), errors);
            })
        },
        warn,
        ..Rules::none()
    }
}

pub(crate) fn warn(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    let driver = subject.new_object().dig(&["spec", "driver"]);
    if driver.text() != driver.text().to_lowercase() {
        out.push(format!(
            "spec.driver: driver names should be lowercase; {:?} contains uppercase characters",
            driver.text()
        ));
    }
}

/// Drops what features have that are off, unless it was there before (`dropDisabledFields`). What was never on, was never there.
fn drop_disabled(slice: &mut Value, old: Option<&Value>) {
    let before = old.and_then(|old| old.get("spec"));
    let had = |fields: &[&str]| any_has(before, "devices", fields);
    let had_here = |fields: &[&str]| {
        before.is_some_and(|spec| fields.iter().any(|field| !At::root(spec).get(field).is_empty()))
    };
    let goes = |gate: &str, had: bool| !has_feature(gate) && !had;
    let placed = ["consumesCounters", "nodeName", "nodeSelector", "allNodes"];
    let shared = ["sharedCounters", "perDeviceNodeSelection"];
    let bound = ["bindingConditions", "bindingFailureConditions", "bindsToNode"];
    let no_parts = goes("DRAPartitionableDevices", had(&placed) || had_here(&shared));
    let no_shares = goes("DRAConsumableCapacity", had(&["allowMultipleAllocations"]));
    let mut fields: Vec<&str> = Vec::new();
    let gone = [
        (goes("DRADeviceTaints", had(&["taints"])), &["taints"][..]),
        (no_parts, &placed),
        (goes("DRADeviceBindingConditions", had(&bound)), &bound),
        (no_shares, &["allowMultipleAllocations"]),
        (
            goes("DRANodeAllocatableResources", false),
            &["nodeAllocatableResourceMappings", "nodeAllocatableResources"],
        ),
    ];
    fields.extend(gone.iter().filter(|(goes, _)| *goes).flat_map(|(_, fields)| fields.iter()));
    let (no_lists, no_groups) =
        (goes("DRAListTypeAttributes", false), goes("DRADeviceCompatibilityGroups", false));
    let Some(spec) = fill::present(slice, "spec") else { return };
    let of_spec = [
        (no_parts, "sharedCounters"),
        (no_parts, "perDeviceNodeSelection"),
        (goes("DRAPartitionableDevicesType", false), "partitionTypeAttribute"),
        (goes("DRAOptionalNodeOperations", false), "skipNodeOperations"),
    ];
    for (_, field) in of_spec.iter().filter(|(goes, _)| *goes) {
        fill::remove(spec, field);
    }
    fill::each(spec, "devices", |device| {
        fields.iter().for_each(|field| fill::remove(device, field));
        if no_groups {
            fill::each(device, "consumesCounters", |taken| fill::remove(taken, "compatibilityGroups"));
        }
        if no_lists {
            each_value(device, "attributes", |attribute| {
                ["bools", "ints", "strings", "versions"]
                    .iter()
                    .for_each(|list| fill::remove(attribute, list));
            });
        }
        if no_shares {
            each_value(device, "capacity", |capacity| fill::remove(capacity, "requestPolicy"));
        }
    });
}

fn each_value(parent: &mut Value, field: &str, mut change: impl FnMut(&mut Value)) {
    if let Some(Value::Object(values)) = parent.get_mut(field) {
        values.iter_mut().for_each(|(_, value)| change(value));
    }
}

fn check(spec: &At<'_>, old: Option<&At<'_>>, errors: &mut Errors) {
    check_driver_name(&spec.get("driver"), errors);
    check_pool(&spec.get("pool"), errors);
    if let Some(old) = old {
        for field in [&["pool", "name"][..], &["driver"], &["nodeName"]] {
            errors.immutable(&spec.dig(field), &old.dig(field));
        }
    }
    check_nodes(spec, errors);
    let (shared, devices) = (spec.get("sharedCounters"), spec.get("devices"));
    if shared.is_set() && devices.is_set() {
        errors.invalid_as(spec, "", "only one of `sharedCounters` or `devices` is allowed");
    }
    let is_advanced = devices
        .items()
        .any(|device| !device.get("taints").is_empty() || !device.get("consumesCounters").is_empty());
    let per_device = spec.get("perDeviceNodeSelection").is_true();
    let most = if is_advanced { ADVANCED_DEVICES } else { DEVICES };
    check_set(
        &devices,
        most,
        errors,
        |device, errors| {
            let name = device.get("name");
            let before = old.and_then(|old| {
                old.get("devices").items().find(|before| before.get("name").text() == name.text())
            });
            check_device(device, before.as_ref(), per_device, errors);
        },
        by_name,
    );
    let check_counter_set = |set: &At<'_>, errors: &mut Errors| {
        errors.need_text(&set.get("name"), text::label);
        capacity::check_counters(&set.get("counters"), COUNTERS, errors);
    };
    check_set(&shared, COUNTER_SETS, errors, check_counter_set, by_name);
}

fn check_pool(pool: &At<'_>, errors: &mut Errors) {
    names::check_pool(&pool.get("name"), errors);
    let count = pool.get("resourceSliceCount");
    let number = count.number().unwrap_or_default();
    if number <= 0 {
        errors.invalid_as(&count, number, "must be greater than zero");
    }
    let generation = pool.get("generation");
    if generation.number().is_some_and(|number| number < 0) {
        errors.invalid(&generation, "must be greater than or equal to zero");
    }
}

/// Which nodes have the devices.
fn check_nodes(spec: &At<'_>, errors: &mut Errors) {
    let mut ways = Vec::new();
    let node = spec.get("nodeName");
    if node.is_set() {
        if node.is_empty() {
            errors.invalid(&node, "must be either unset or set to a non-empty string");
        } else {
            ways.push("`nodeName`");
            errors.text(&node, text::subdomain);
        }
    }
    let selector = spec.get("nodeSelector");
    if selector.is_set() {
        ways.push("`nodeSelector`");
        check_node_selector(&selector, errors);
        let terms = selector.get("nodeSelectorTerms");
        if terms.len() != 1 {
            let error =
                FieldError::invalid(&terms.path, Value::Null, "must have exactly one node selector term");
            let printed = match terms.is_empty() {
                true if terms.is_set() => "[]".to_owned(),
                true => "null".to_owned(),
                false => shapes::terms(terms.value),
            };
            errors.push(error.printed(printed));
        }
    }
    for (field, way) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")] {
        let flag = spec.get(field);
        if flag.is_true() {
            ways.push(way);
        } else if flag.is_set() {
            errors.invalid(&flag, "must be either unset or set to true");
        }
    }
    match ways.len() {
        0 => errors.required(spec, WAYS),
        1 => {}
        _ => errors.invalid_as(
            spec,
            format!("{{{}}}", ways.join(", ")),
            format!("{WAYS}, but multiple fields are set"),
        ),
    }
}

fn check_device(device: &At<'_>, old: Option<&At<'_>>, per_device: bool, errors: &mut Errors) {
    names::check_label(&device.get("name"), errors);
    let (attributes, capacities) = (device.get("attributes"), device.get("capacity"));
    let entries = attributes.len() + capacities.len();
    if entries > ENTRIES {
        let detail = format!("the total number of attributes and capacities must not exceed {ENTRIES}");
        errors.invalid_as(device, entries, detail);
    }
    if attributes.len() > VALUES && since(Version::V1_36) {
        let detail = format!("the total number of attribute values must not exceed {VALUES}");
        errors.invalid_as(device, attributes.len(), detail);
    }
    for (key, attribute) in attributes.entries() {
        names::check_qualified(if since(Version::V1_36) { &attributes } else { &attribute }, key, errors);
        capacity::check_attribute(&names::shortened(&attributes, key, &attribute), errors);
    }
    let is_stored = |field: &str| old.is_some_and(|old| old.get(field).same(&device.get(field)));
    if !is_stored("capacity") {
        let is_shared = device.get("allowMultipleAllocations").is_true();
        capacity::check_capacities(&capacities, is_shared, errors);
    }
    if !is_stored("taints") {
        check_list(&device.get("taints"), TAINTS, errors, |taint, errors| {
            taints::check_taint(taint, None, errors);
        });
    }
    check_set(
        &device.get("consumesCounters"),
        CONSUMED,
        errors,
        |taken, errors| {
            errors.need_text(&taken.get("counterSet"), text::label);
            capacity::check_counters(&taken.get("counters"), COUNTERS, errors);
        },
        |taken| taken.get("counterSet").text().to_owned(),
    );
    check_nodes_of_device(device, per_device, errors);
    check_binding(device, errors);
}

fn check_nodes_of_device(device: &At<'_>, per_device: bool, errors: &mut Errors) {
    let (node, selector, all) = (device.get("nodeName"), device.get("nodeSelector"), device.get("allNodes"));
    if !per_device {
        if node.is_set() || selector.is_set() || all.is_set() {
            errors.invalid_as(device, Value::Null, "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec");
        }
        return;
    }
    let mut ways = Vec::new();
    if node.is_set() {
        if node.is_empty() {
            errors.invalid(&node, "must not be empty");
        } else {
            ways.push("`nodeName`");
            errors.text(&node, text::subdomain);
        }
    }
    if selector.is_set() {
        ways.push("`nodeSelector`");
        check_node_selector(&selector, errors);
    }
    if all.is_true() {
        ways.push("`allNodes`");
    } else if all.is_set() {
        errors.invalid(&all, "must be either unset or set to true");
    }
    match ways.len() {
        0 => errors.required(device, WAYS_OF_DEVICE),
        1 => {}
        _ => errors.invalid_as(device, format!("{{{}}}", ways.join(", ")), WAYS_OF_DEVICE),
    }
}

/// What has to be true before a pod is bound, and what says that it never will be (`validateDeviceBindingParameters`).
pub(super) fn check_binding(at: &At<'_>, errors: &mut Errors) {
    let (good, bad) = (at.get("bindingConditions"), at.get("bindingFailureConditions"));
    for list in [&good, &bad] {
        check_list(list, CONDITIONS, errors, |condition, errors| errors.text(condition, text::label_key));
    }
    let is_repeated = |list: &At<'_>, item: &At<'_>, index: usize| {
        list.items().take(index).any(|before| before.text() == item.text())
    };
    for (index, condition) in good.items().enumerate() {
        if is_repeated(&good, &condition, index) {
            errors.duplicate(&condition);
        }
    }
    for (index, condition) in bad.items().enumerate() {
        if is_repeated(&bad, &condition, index) {
            errors.duplicate(&condition);
        }
        if good.items().any(|other| other.text() == condition.text()) {
            errors.invalid(&condition, "bindingFailureConditions must not overlap with bindingConditions");
        }
    }
    if good.is_empty() && !bad.is_empty() {
        errors.invalid(&good, "bindingConditions are required to use bindingFailureConditions");
    }
    if bad.is_empty() && !good.is_empty() {
        errors.invalid(&bad, "bindingFailureConditions are required to use bindingConditions");
    }
}
