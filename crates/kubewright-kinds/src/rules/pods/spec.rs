//! The spec of a pod as a whole (`ValidatePodSpec`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{ip, resources, selector, text};
use super::{PodParts, claims, containers, scheduling, security, systems, volumes, whole};

/// Checks a pod's spec. `name` is the pod's name (empty in a template); `is_pod` is false in a template.
pub(super) fn check(spec: &At<'_>, name: &str, is_pod: bool, errors: &mut Errors) {
    let field = |name: &str| spec.get(name);
    if !field("terminationGracePeriodSeconds").is_set() {
        errors.required(&field("terminationGracePeriodSeconds"), "");
    }
    let volumes = volumes::check(&field("volumes"), name, errors);
    let pod = PodParts::of(spec, volumes);
    claims::check(&field("resourceClaims"), errors);
    containers::check(&field("containers"), &pod, errors);
    containers::check_init(&field("initContainers"), &pod, errors);
    containers::check_ephemeral(&field("ephemeralContainers"), &field("initContainers"), &pod, errors);
    check_resources(spec, &pod, errors);
    check_host_network(spec, is_pod, errors);
    errors.need_one_of(&field("restartPolicy"), &["Always", "OnFailure", "Never"]);
    errors.need_one_of(&field("dnsPolicy"), &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    selector::check_labels(&field("nodeSelector"), errors);
    security::check_pod(spec, errors);
    scheduling::check_affinity(&field("affinity"), errors);
    check_dns(spec, errors);
    for gate in field("readinessGates").items() {
        errors.text(&gate.get("conditionType"), text::label_key);
    }
    check_scheduling_gates(&field("schedulingGates"), errors);
    scheduling::check_spread(&field("topologySpreadConstraints"), errors);
    systems::check_host_processes(spec, errors);
    check_user_namespace(spec, errors);
    check_names(spec, errors);
    errors.within(&field("activeDeadlineSeconds"), 1, i32::MAX.into());
    errors.maybe_text(&field("hostname"), text::label);
    errors.maybe_text(&field("subdomain"), text::label);
    scheduling::check_tolerations(&field("tolerations"), errors);
    for alias in field("hostAliases").items() {
        errors.text(&alias.get("ip"), ip::address);
        for hostname in alias.get("hostnames").items() {
            errors.text(&hostname, text::subdomain);
        }
    }
    errors.maybe_text(&field("priorityClassName"), text::subdomain);
    if field("runtimeClassName").is_set() {
        errors.text(&field("runtimeClassName"), text::subdomain);
    }
    if field("preemptionPolicy").is_set() {
        errors.need_one_of(&field("preemptionPolicy"), &["PreemptLowerPriority", "Never"]);
    }
    for (resource, entry) in field("overhead").entries() {
        let at = At { path: format!("{}.limits[{resource}]", field("overhead").path), ..entry };
        resources::container_name(resource, &at, errors);
        resources::amount(resource, &at, errors);
    }
    systems::check(spec, errors);
    check_files_of_variables(spec, errors);
}

/// A variable may be read from a file of an empty directory only (`validateFileKeyRefVolumes`).
fn check_files_of_variables(spec: &At<'_>, errors: &mut Errors) {
    let mut volumes: BTreeMap<&str, At<'_>> = BTreeMap::new();
    for volume in spec.get("volumes").items() {
        volumes.entry(volume.get("name").text()).or_insert(volume);
    }
    for variable in systems::containers(spec).flat_map(|container| container.get("env").items()) {
        let reference = variable.dig(&["valueFrom", "fileKeyRef"]);
        if !reference.is_set() {
            continue;
        }
        let name = reference.get("volumeName");
        match volumes.get(name.text()) {
            None => errors.not_found(&name),
            Some(volume) if !volume.get("emptyDir").is_set() => {
                errors.invalid_text(&name, "referenced volume must be of type emptyDir");
            }
            Some(_) => {}
        }
    }
}

fn check_names(spec: &At<'_>, errors: &mut Errors) {
    let hostname = spec.get("hostnameOverride");
    if hostname.is_set() {
        if spec.get("setHostnameAsFQDN").is_true() {
            errors.forbidden(&hostname, "may not be specified when setHostnameAsFQDN is true");
        }
        if spec.get("hostNetwork").is_true() {
            errors.forbidden(&hostname, "may not be specified when hostNetwork is true");
        }
        if hostname.text().len() > 64 {
            errors.push(kubewright_meta::FieldError::too_long(&hostname.path, 64));
        }
        errors.text(&hostname, text::subdomain);
    }
    errors.maybe_text(&spec.get("serviceAccountName"), text::subdomain);
    errors.maybe_text(&spec.get("nodeName"), text::subdomain);
}

fn check_resources(spec: &At<'_>, pod: &PodParts<'_>, errors: &mut Errors) {
    let whole = spec.get("resources");
    if !whole.is_set() {
        return;
    }
    if pod.os == Some("windows") {
        errors.forbidden(&whole, "may not be set for a windows pod");
        return;
    }
    if whole.get("claims").is_set() {
        errors.forbidden(&whole.get("claims"), "claims may not be set for Resources at pod-level");
    }
    resources::check_pod(&whole, &pod.claims, errors);
    whole::check(spec, errors);
}

fn check_host_network(spec: &At<'_>, is_pod: bool, errors: &mut Errors) {
    if !spec.get("hostNetwork").is_true() {
        return;
    }
    for port in spec.get("containers").items().flat_map(|container| container.get("ports").items()) {
        let number = |field: &str| port.get(field).number().unwrap_or_default();
        let (host, own) = (number("hostPort"), number("containerPort"));
        if (is_pod || host != 0) && host != own {
            errors.invalid_as(
                &port.get("hostPort"),
                host,
                "must match `containerPort` when `hostNetwork` is true",
            );
        }
    }
}

fn check_dns(spec: &At<'_>, errors: &mut Errors) {
    let config = spec.get("dnsConfig");
    let servers = config.get("nameservers");
    if spec.get("dnsPolicy").text() == "None" {
        if !config.is_set() {
            errors.required(&config, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if servers.is_empty() {
            errors.required(&servers, "must provide at least one DNS nameserver when `dnsPolicy` is None");
            return;
        }
    }
    if servers.len() > 3 {
        errors.invalid(&servers, "must not have more than 3 nameservers");
    }
    for server in servers.items() {
        errors.text(&server, ip::address);
    }
    let searches = config.get("searches");
    if searches.len() > 32 {
        errors.invalid(&searches, "must not have more than 32 search paths");
    }
    let characters: usize = searches.items().map(|search| search.text().len() + 1).sum();
    if characters > 2048 + 1 {
        errors.invalid(
            &searches,
            "must not have more than 2048 characters (including spaces) in the search list",
        );
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let name = search.text().strip_suffix('.').unwrap_or(search.text());
        for message in text::subdomain_with_underscore(name) {
            errors.invalid_as(&search, name, message);
        }
    }
    for option in config.get("options").items() {
        if option.get("name").is_empty() {
            errors.required(&option, "must not be empty");
        }
    }
}

fn check_scheduling_gates(gates: &At<'_>, errors: &mut Errors) {
    let mut seen = std::collections::BTreeSet::new();
    for gate in gates.items() {
        let name = gate.get("name").text();
        for message in text::label_key(name) {
            errors.invalid_as(&gate, name, message);
        }
        if !seen.insert(name) {
            errors.push(kubewright_meta::FieldError::duplicate(&gate.path, name));
        }
    }
}

fn check_user_namespace(spec: &At<'_>, errors: &mut Errors) {
    if spec.get("hostUsers").value != &Value::Bool(false) {
        return;
    }
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.get(field).is_true() {
            errors.forbidden(&spec.get(shown), "when `hostUsers` is false");
        }
    }
    for devices in systems::containers(spec).map(|container| container.get("volumeDevices")) {
        if !devices.is_empty() {
            errors.forbidden(&devices, "when `hostUsers` is false");
        }
    }
}
