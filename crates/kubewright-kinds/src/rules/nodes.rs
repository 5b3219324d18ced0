//! Nodes.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use kubewright_spec::Version;
use serde_json::{Value, json};

use super::at::At;
use super::errors::Errors;
use super::pods::EFFECTS;
use super::printed::Fields;
use super::printed::Shape::{self, Plain};
use super::{Again, Rules, fill, ip, resources, text, version};

/// What a node tells of its machine; the names are there before the kubelet fills them in.
const INFO: [&str; 10] = [
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
];

const LONGEST_FEATURE: usize = 253;
/// An address as Go prints it.
const ADDRESS: Fields = &[("Type", "type", Plain("\"\"")), ("Address", "address", Plain("\"\""))];

pub(crate) const fn rules() -> Rules {
    Rules {
        default,
        // The configuration of kubelets by the API is gone.
        prepare_create: |node| drop_configuration(node),
        prepare_update: |new, old| {
            if !At::root(old).dig(&["spec", "configSource"]).is_set() {
                drop_configuration(new);
            }
        },
        prepare_status: |new, old| {
            if !At::root(old).dig(&["status", "config"]).is_set()
                && let Some(status) = fill::present(new, "status")
            {
                fill::remove(status, "config");
            }
        },
        again: Again::Object,
        validate: |node| Errors::of(|errors| check(&At::root(node), errors)),
        validate_update: |new, old| Errors::of(|errors| check_change(&At::root(new), &At::root(old), errors)),
        validate_status: |new, _| Errors::of(|errors| check_status(&At::root(new), errors)),
        ..Rules::none()
    }
}

fn drop_configuration(node: &mut Value) {
    for (part, field) in [("spec", "configSource"), ("status", "config")] {
        if let Some(part) = fill::present(node, part) {
            fill::remove(part, field);
        }
    }
}

fn default(node: &mut Value) {
    fill::object(node, "spec");
    let Some(status) = fill::object(node, "status") else { return };
    fill::canonical_map(status, "capacity");
    fill::canonical_map(status, "allocatable");
    if let Some(capacity) = status.get("capacity").filter(|capacity| capacity.is_object()).cloned() {
        fill::absent(status, "allocatable", capacity);
    }
    let endpoint =
        fill::object(status, "daemonEndpoints").and_then(|ends| fill::object(ends, "kubeletEndpoint"));
    if let Some(endpoint) = endpoint {
        fill::absent(endpoint, "Port", 0);
    }
    if let Some(info) = fill::object(status, "nodeInfo") {
        for field in INFO {
            fill::absent(info, field, "");
        }
    }
    let Some(spec) = fill::present(node, "spec") else { return };
    // A single range and the list of ranges say the same.
    let single = At::root(spec).get("podCIDR").text().to_owned();
    let first = spec.get("podCIDRs").and_then(|ranges| ranges.get(0)).cloned();
    if !single.is_empty() && first.as_ref().and_then(Value::as_str) != Some(&single) {
        fill::set(spec, "podCIDRs", json!([single]));
    } else if let (true, Some(first)) = (single.is_empty(), first) {
        fill::set(spec, "podCIDR", first);
    }
}

fn check(node: &At<'_>, errors: &mut Errors) {
    let spec = node.get("spec");
    // Kubernetes says `metadata.taints`.
    check_taints(&At { path: "metadata.taints".to_owned(), ..spec.get("taints") }, errors);
    check_resources(node, errors);
    let capacity = node.dig(&["status", "nodeInfo", "swap", "capacity"]);
    if capacity.number().is_some_and(|number| number <= 0) {
        // Kubernetes says `metadata.nodeSwapStatus`.
        let at = At { path: "metadata.nodeSwapStatus.capacity".to_owned(), ..capacity };
        errors.invalid(&at, "must be greater than zero");
    }
    check_features(&node.dig(&["status", "declaredFeatures"]), errors);
    let ranges = spec.get("podCIDRs");
    for range in ranges.items() {
        errors.text(&range, ip::range);
    }
    let texts: Vec<&str> = ranges.items().map(|range| range.value.as_str().unwrap_or_default()).collect();
    let families = ip::families_of_ranges(&texts);
    if let Err(why) = &families {
        errors
            .internal(&ranges, format!("invalid PodCIDRs. failed to check with dual stack with error:{why}"));
    }
    if families != Ok(true) {
        errors.invalid(&ranges, "may specify no more than one CIDR for each IP family");
    }
}

fn check_taints(taints: &At<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for taint in taints.items() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        errors.text(&key, text::label_key);
        let wrong = text::label_value(value.text());
        if !wrong.is_empty() {
            errors.invalid(&value, wrong.join(";"));
        }
        errors.need_one_of(&effect, &EFFECTS);
        if !seen.insert((effect.text(), key.text())) {
            let printed = format!(
                "{{\"Key\":{:?},\"Value\":{:?},\"Effect\":{:?},\"TimeAdded\":{}}}",
                key.text(),
                value.text(),
                effect.text(),
                taint.get("timeAdded").value
            );
            let error = FieldError::duplicate(&taint.path, Value::Null).printed(printed);
            errors.push(FieldError {
                detail: "taints must be unique by key and effect pair".to_owned(),
                ..error
            });
        }
    }
}

fn check_resources(node: &At<'_>, errors: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        for (name, amount) in node.dig(&["status", list]).entries() {
            resources::amount(name, &At { path: format!("status.{list}.{name}"), ..amount }, errors);
        }
    }
}

/// What a status may not say (`ValidateNodeUpdate`).
fn check_status(node: &At<'_>, errors: &mut Errors) {
    check_resources(node, errors);
    check_features(&node.dig(&["status", "declaredFeatures"]), errors);
    let mut seen = BTreeSet::new();
    for address in node.dig(&["status", "addresses"]).items() {
        let (kind, text) = (address.get("type").text(), address.get("address").text());
        if !seen.insert((kind, text)) {
            let printed = Shape::Struct(ADDRESS).of(address.value);
            errors.push(FieldError::duplicate(&address.path, Value::Null).printed(printed));
        }
    }
}

/// The features that a kubelet says it has: in order, and each once (`validateNodeDeclaredFeatures`).
fn check_features(features: &At<'_>, errors: &mut Errors) {
    if !version::has_feature("NodeDeclaredFeatures") {
        return;
    }
    let mut before: Option<&str> = None;
    for feature in features.items() {
        let name = feature.text();
        match before {
            Some(before) if before == name => errors.duplicate(&feature),
            Some(before) if before > name => {
                errors.invalid_text(&feature, "list must be sorted alphabetically");
            }
            _ => {}
        }
        if name.len() > LONGEST_FEATURE {
            let detail =
                format!("invalid feature name {name:?}: must be no more than {LONGEST_FEATURE} characters");
            errors.invalid_text(&feature, detail);
        } else if !is_feature(name) {
            errors.invalid_text(
                &feature,
                format!("invalid feature name {name:?}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"),
            );
        }
        before = Some(name);
    }
}

fn is_feature(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    name.starts_with(|first: char| first.is_ascii_uppercase()) && name.split('/').all(is_part)
}

fn check_change(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    check_status(new, errors);
    if !before.get("podCIDRs").is_empty() && !spec.get("podCIDRs").same(&before.get("podCIDRs")) {
        errors.forbidden(
            &spec.get("podCIDRs"),
            "node updates may not change podCIDR except from \"\" to valid",
        );
    }
    if before.get("externalID").text() != spec.get("externalID").text() {
        errors.forbidden(&spec.get("externalID"), "may not be updated");
    }
    check_provider(&spec.get("providerID"), &before.get("providerID"), errors);
    check_taints(&At { path: "metadata.taints".to_owned(), ..spec.get("taints") }, errors);
}

/// Who a node is to its provider is said once. (Up to v1.36 all changes were told in the same words.)
fn check_provider(id: &At<'_>, before: &At<'_>, errors: &mut Errors) {
    if before.is_empty() || before.text() == id.text() {
    } else if !version::since(Version::V1_37) {
        errors.forbidden(id, "node updates may not change providerID except from \"\" to valid");
    } else if id.is_empty() {
        errors.invalid_as(id, Value::Null, "field cannot be cleared once set");
    } else {
        errors.invalid_as(id, Value::Null, "field cannot be modified once set");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: &Value) -> Vec<String> {
        let errors = Errors::of(|errors| check_status(&At::root(&json!({"status": status})), errors));
        errors.iter().map(|error| format!("{}: {}", error.field, error.body())).collect()
    }

    #[test]
    fn features_of_a_node_are_sorted_and_each_is_there_once() {
        assert_eq!(said(&json!({"declaredFeatures": ["A", "B/c", "Cd"]})), [""; 0]);
        let told = said(&json!({"declaredFeatures": ["B", "A", "A", "x"]}));
        assert_eq!(
            told[0],
            r#"status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically"#
        );
        assert_eq!(told[1], r#"status.declaredFeatures[2]: Duplicate value: "A""#);
        assert!(told[2].starts_with(
            r#"status.declaredFeatures[3]: Invalid value: "x": invalid feature name "x": must start"#
        ));
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn a_node_has_each_address_once() {
        let address = json!({"type": "InternalIP", "address": "10.0.0.1"});
        let told = r#"status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"10.0.0.1"}"#;
        assert_eq!(said(&json!({"addresses": [address, address]})), [told]);
    }
}
