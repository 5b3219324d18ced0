//! The status of claims: which devices were allocated, to whom, and what drivers tell of them.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use kubewright_spec::Version;
use serde_json::Value;

use super::super::at::At;
use super::super::conditions::check as check_conditions;
use super::super::errors::{Errors, IMMUTABLE};
use super::super::pods::check_node_selector;
use super::super::pods::volumes::check_driver_name;
use super::super::version::{has_feature, since};
use super::super::{fill, text};
use super::{any_has, check_list, check_set, itself, names, requests, shapes, slices, taints};

/// How many there may be of each.
const USERS: usize = 256;
const RESULTS: usize = 32;
const CONDITIONS: usize = 8;
const ADDRESSES: usize = 16;
/// Bytes of what a driver tells.
const DATA: usize = 10 * 1024;
const INTERFACE: usize = 256;
const HARDWARE: usize = 128;

/// Drops what drivers told of devices that are no longer allocated, and what features have that are off, unless it was there before.
pub(super) fn prepare(claim: &mut Value, old: &Value) {
    let before = old.pointer("/status/allocation/devices");
    for (gate, fields) in [
        ("DRAConsumableCapacity", &["shareID", "consumedCapacity"][..]),
        ("DRADeviceBindingConditions", &["bindingConditions", "bindingFailureConditions"]),
        ("DRAOptionalNodeOperations", &["skipNodeOperations"]),
    ] {
        if has_feature(gate) || any_has(before, "results", fields) {
            continue;
        }
        if let Some(devices) = fill::reach(claim, &["status", "allocation", "devices"]) {
            let drop = |result: &mut Value| fields.iter().for_each(|field| fill::remove(result, field));
            fill::each(devices, "results", drop);
        }
    }
    let allocated = |claim: &Value| allocated(&At::root(claim).get("status"));
    let now = allocated(claim);
    let gone: BTreeSet<String> = allocated(old).into_iter().filter(|device| !now.contains(device)).collect();
    let Some(Value::Array(devices)) = claim.pointer_mut("/status/devices") else { return };
    devices.retain(|device| !gone.contains(&shapes::device_id(device)));
    if devices.is_empty()
        && let Some(status) = fill::present(claim, "status")
    {
        fill::remove(status, "devices");
    }
}

/// The devices of an allocation, each as it is identified.
fn allocated(status: &At<'_>) -> BTreeSet<String> {
    let results = status.dig(&["allocation", "devices", "results"]);
    results.items().map(|result| shapes::device_id(result.value)).collect()
}

pub(super) fn check(claim: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let known = requests::Names::of(&claim.dig(&["spec", "devices"]));
    let (status, before) = (claim.get("status"), old.get("status"));
    let users = status.get("reservedFor");
    check_set(&users, USERS, errors, check_user, |user| user.get("uid").text().to_owned());
    check_devices(&status, errors);
    let (allocation, allocated) = (status.get("allocation"), before.get("allocation"));
    if !users.is_empty() {
        if !allocation.is_set() {
            errors.forbidden(&users, "may not be specified when `allocated` is not set");
        } else if claim.dig(&["metadata", "deletionTimestamp"]).is_set() {
            let is_new = |user: At<'_>| !before.get("reservedFor").items().any(|known| known.same(&user));
            if users.items().any(is_new) {
                errors.forbidden(
                    &users,
                    "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
                );
            }
        }
    }
    if allocation.is_set() && allocated.is_set() {
        if !allocation.same(&allocated) {
            errors.push(if since(Version::V1_37) {
                FieldError::invalid(&allocation.path, Value::Null, "field cannot be modified once set")
            } else {
                let error = FieldError::invalid(&allocation.path, allocation.value.clone(), IMMUTABLE);
                error.printed(shapes::allocation(allocation.value))
            });
        }
    } else if allocation.is_set() {
        check_allocation(&allocation, &known, errors);
    }
}

fn check_user(user: &At<'_>, errors: &mut Errors) {
    for field in ["resource", "name", "uid"] {
        errors.need(&user.get(field));
    }
}

fn check_allocation(allocation: &At<'_>, known: &requests::Names<'_>, errors: &mut Errors) {
    let devices = allocation.get("devices");
    check_list(&devices.get("results"), RESULTS, errors, |result, errors| {
        check_result(result, known, errors);
    });
    check_list(&devices.get("config"), 2 * requests::CONFIGS, errors, |config, errors| {
        errors.need_one_of(&config.get("source"), &["FromClaim", "FromClass"]);
        requests::check_references(&config.get("requests"), known, errors);
        requests::check_config(config, true, errors);
    });
    if allocation.get("nodeSelector").is_set() {
        check_node_selector(&allocation.get("nodeSelector"), errors);
    }
}

fn check_result(result: &At<'_>, known: &requests::Names<'_>, errors: &mut Errors) {
    requests::check_reference(&result.get("request"), known, errors);
    names::check_declared_driver(&result.get("driver"), errors);
    names::check_declared_pool(&result.get("pool"), errors);
    names::check_label(&result.get("device"), errors);
    slices::check_binding(result, errors);
    if since(Version::V1_37) {
        for toleration in result.get("tolerations").items() {
            taints::check_toleration(&toleration, errors);
        }
    }
    if result.get("shareID").is_set() {
        names::check_uid(&result.get("shareID"), errors);
    }
}

fn check_devices(status: &At<'_>, errors: &mut Errors) {
    let allocated = allocated(status);
    let devices = status.get("devices");
    for device in devices.items() {
        check_device(&device, &allocated, errors);
    }
    let mut seen = BTreeSet::new();
    for device in devices.items() {
        let id = shapes::device_id(device.value);
        if seen.contains(&id) {
            errors.push(FieldError::duplicate(&device.path, Value::Null).printed(id));
        } else {
            seen.insert(id);
        }
    }
}

fn check_device(device: &At<'_>, allocated: &BTreeSet<String>, errors: &mut Errors) {
    check_driver_name(&device.get("driver"), errors);
    names::check_pool(&device.get("pool"), errors);
    names::check_label(&device.get("device"), errors);
    if device.get("shareID").is_set() {
        names::check_uid(&device.get("shareID"), errors);
    }
    let id = shapes::device_id(device.value);
    if !allocated.contains(&id) {
        let error =
            FieldError::invalid(&device.path, Value::Null, "must be an allocated device in the claim");
        errors.push(error.printed(id));
    }
    let conditions = device.get("conditions");
    if conditions.len() > CONDITIONS {
        errors.too_many(&conditions, conditions.len(), CONDITIONS);
    }
    check_conditions(&conditions, errors);
    if device.get("data").is_set() {
        requests::check_raw(&device.get("data"), DATA, true, errors);
    }
    check_network(&device.get("networkData"), errors);
}

fn check_network(network: &At<'_>, errors: &mut Errors) {
    for (field, most) in [("interfaceName", INTERFACE), ("hardwareAddress", HARDWARE)] {
        let value = network.get(field);
        if value.text().len() > most {
            errors.push(FieldError::too_long(&value.path, most));
        }
    }
    check_set(&network.get("ips"), ADDRESSES, errors, check_address, itself);
}

/// An address with the length of its network, written as it is written canonically (`IsValidInterfaceAddress`).
fn check_address(address: &At<'_>, errors: &mut Errors) {
    let Some((ip, length)) = parse(address.text()) else {
        errors.invalid(address, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)");
        return;
    };
    let (ip, length) = match ip {
        std::net::IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => (std::net::IpAddr::V4(v4), length.saturating_sub(96)),
            None => (ip, length),
        },
        std::net::IpAddr::V4(_) => (ip, length),
    };
    let canonical = format!("{ip}/{length}");
    if canonical != address.text() {
        errors.invalid(address, format!("must be in canonical form ({canonical:?})"));
    }
}

/// An address with a length, in which numbers may begin with zeros.
fn parse(address: &str) -> Option<(std::net::IpAddr, u8)> {
    text::parse_cidr(address).or_else(|| {
        let (ip, length) = address.split_once('/')?;
        let plain = |part: &str| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0".to_owned(),
            rest => rest.to_owned(),
        };
        let ip: Vec<String> = ip.split('.').map(plain).collect();
        text::parse_cidr(&format!("{}/{length}", ip.join(".")))
    })
}
