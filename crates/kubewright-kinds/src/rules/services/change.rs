//! What a change of a service does to what the server gave it: addresses and ports are kept as long as they are used
//! (`patchAllocatedValues`, `normalizeClusterIPs`, `dropTypeDependentFields`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::at::{At, same};
use super::super::errors::Errors;
use super::super::fill;
use super::service::{self, is_external};

/// Tells a single cluster address as a list too.
pub(super) fn list_cluster_ip(spec: &mut Value) {
    let at = At::root(spec);
    let ip = at.get("clusterIP").text().to_owned();
    if !ip.is_empty() && at.get("clusterIPs").is_empty() {
        fill::set(spec, "clusterIPs", json!([ip]));
    }
}

/// Carries over what the client left out, and drops what no longer applies and the client did not touch.
pub(super) fn prepare(new: &mut Value, old: &Value) {
    let before = old.get("spec").cloned().unwrap_or_default();
    let Some(spec) = fill::present(new, "spec") else { return };
    keep_addresses(spec, &before);
    if uses_node_ports(spec) && uses_node_ports(&before) {
        keep_node_ports(spec, &before);
    }
    if checks_health(spec) && checks_health(&before) && is_zero(spec, "healthCheckNodePort") {
        fill::keep(spec, &before, "healthCheckNodePort");
    }
    drop_unused(spec, &before);
}

fn text<'a>(spec: &'a Value, field: &str) -> &'a str {
    spec.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn is_zero(spec: &Value, field: &str) -> bool {
    spec.get(field).and_then(Value::as_i64).unwrap_or_default() == 0
}

fn unchanged(spec: &Value, before: &Value, field: &str) -> bool {
    same(spec.get(field).unwrap_or(&Value::Null), before.get(field).unwrap_or(&Value::Null))
}

fn has_address(spec: &Value) -> bool {
    text(spec, "type") != "ExternalName"
}

fn uses_node_ports(spec: &Value) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

fn checks_health(spec: &Value) -> bool {
    is_balanced(spec) && text(spec, "externalTrafficPolicy") == "Local"
}

fn keep_addresses(spec: &mut Value, before: &Value) {
    if has_address(spec) && has_address(before) {
        if text(spec, "clusterIP").is_empty() {
            fill::keep(spec, before, "clusterIP");
        }
        if At::root(spec).get("clusterIPs").is_empty() {
            fill::keep(spec, before, "clusterIPs");
        }
        if !At::root(spec).get("ipFamilyPolicy").is_set() {
            fill::keep(spec, before, "ipFamilyPolicy");
        }
    }
    // Who changes only the single address means the list too.
    if !unchanged(spec, before, "clusterIP") && unchanged(spec, before, "clusterIPs") {
        fill::remove(spec, "clusterIPs");
    }
    list_cluster_ip(spec);
}

fn keep_node_ports(spec: &mut Value, before: &Value) {
    let used = |spec: &Value| -> BTreeSet<i64> {
        At::root(spec).get("ports").items().filter_map(|port| port.get("nodePort").number()).collect()
    };
    let (now, then) = (used(spec), used(before));
    let old: BTreeMap<String, i64> = At::root(before)
        .get("ports")
        .items()
        .filter_map(|port| Some((port.get("name").text().to_owned(), port.get("nodePort").number()?)))
        .filter(|(_, number)| *number != 0 && !(now.contains(number) && then.contains(number)))
        .collect();
    fill::each(spec, "ports", |port| {
        if is_zero(port, "nodePort")
            && let Some(number) = old.get(text(port, "name"))
        {
            fill::set(port, "nodePort", *number);
        }
    });
}

fn drop_unused(spec: &mut Value, before: &Value) {
    if has_address(before) && !has_address(spec) {
        if unchanged(spec, before, "clusterIPs") || At::root(spec).get("clusterIPs").is_empty() {
            fill::remove(spec, "clusterIP");
            fill::remove(spec, "clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if unchanged(spec, before, field) {
                fill::remove(spec, field);
            }
        }
    }
    if uses_node_ports(before) && !uses_node_ports(spec) {
        let ports = |spec: &Value| -> std::collections::BTreeSet<i64> {
            At::root(spec).get("ports").items().filter_map(|port| port.get("nodePort").number()).collect()
        };
        if ports(before) == ports(spec) {
            fill::each(spec, "ports", |port| fill::remove(port, "nodePort"));
        }
    }
    for field in no_longer_used(spec, before) {
        fill::remove(spec, field);
    }
}

/// The fields that applied to the old type, do not apply to the new one, and were not touched.
fn no_longer_used(spec: &Value, before: &Value) -> Vec<&'static str> {
    let ended = |applies: fn(&Value) -> bool| applies(before) && !applies(spec);
    [
        ("healthCheckNodePort", ended(checks_health)),
        ("allocateLoadBalancerNodePorts", ended(is_balanced)),
        ("loadBalancerClass", ended(is_balanced)),
        ("externalTrafficPolicy", ended(is_reachable)),
    ]
    .into_iter()
    .filter(|(field, ended)| *ended && unchanged(spec, before, field))
    .map(|(field, _)| field)
    .collect()
}

fn is_balanced(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer"
}

fn is_reachable(spec: &Value) -> bool {
    is_external(&At::root(spec))
}

/// What may not change.
pub(super) fn check(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    check_cluster_ips(new, old, errors);
    let class = new.get("loadBalancerClass");
    if is_balanced(new.value) && is_balanced(old.value) && !class.same(&old.get("loadBalancerClass")) {
        errors.invalid(&class, "may not change once set");
    }
    // The class is looked at once more with the service as a whole, so what is wrong with it is told twice.
    service::check_class(new, errors);
    let health = new.get("healthCheckNodePort");
    if checks_health(new.value) && checks_health(old.value) && !health.same(&old.get("healthCheckNodePort")) {
        errors.forbidden(&health, "field is immutable");
    }
}

/// What may not change of the addresses (`validateUpgradeDowngradeClusterIPs`, `…IPFamilies`).
pub(super) fn check_cluster_ips(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    if !has_address(new.value) || !has_address(old.value) {
        return;
    }
    let (now, then) = (new.get("clusterIPs"), old.get("clusterIPs"));
    check_addresses(new, &now, &then, errors);
    let headless = |ips: &At<'_>| ips.items().any(|ip| ip.text() == "None");
    if !headless(&now) && !headless(&then) {
        check_families(new, old, errors);
    }
}

fn check_addresses(spec: &At<'_>, now: &At<'_>, then: &At<'_>, errors: &mut Errors) {
    let nth = |index: usize| At { path: format!("{}[{index}]", now.path), ..now.clone() };
    if !then.is_empty() && now.is_empty() {
        errors.invalid(&nth(0), "primary clusterIP can not be unset");
    }
    // A second address may come and go; the first stays, and both stay where there are as many as before.
    let compared = if now.len() == then.len() { then.len() } else { 1 };
    for (index, (new, old)) in now.items().zip(then.items()).take(compared).enumerate() {
        if new.text() != old.text() {
            errors.invalid(&nth(index), "may not change once set");
        }
    }
    let policy = spec.get("ipFamilyPolicy");
    if then.len() > now.len() && now.len() == 1 && policy.text() != "SingleStack" {
        errors.invalid(&policy, "must be set to 'SingleStack' when releasing the secondary clusterIP");
    }
}

fn check_families(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (now, then) = (new.get("ipFamilies"), old.get("ipFamilies"));
    let first = At { path: format!("{}[0]", now.path), ..now.clone() };
    let compared = if now.len() == then.len() { then.len() } else { 1 };
    for (new, old) in now.items().zip(then.items()).take(compared) {
        if new.text() != old.text() {
            errors.invalid(&first, "may not change once set");
        }
    }
    let policy = new.get("ipFamilyPolicy");
    if then.len() > now.len() && now.len() == 1 && policy.text() != "SingleStack" {
        errors.invalid(&policy, "must be set to 'SingleStack' when releasing the secondary ipFamily");
    }
}
