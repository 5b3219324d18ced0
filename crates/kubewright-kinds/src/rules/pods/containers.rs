//! The containers of a pod: ordinary, initial and ephemeral ones.

use std::collections::BTreeSet;

use kubewright_spec::Version;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{resources, text, version};
use super::{PodParts, env, handlers, mounts, security};

const RULES_ALONE: &str = "must specify restartPolicy when restart rules are used";

/// `containers` (`validateContainers`).
pub(super) fn check(list: &At<'_>, pod: &PodParts<'_>, errors: &mut Errors) {
    if list.is_empty() {
        errors.required(list, "");
        return;
    }
    let mut names = BTreeSet::new();
    for container in list.items() {
        check_common(&container, pod, errors);
        check_new_name(&container, &mut names, errors);
        let lifecycle = container.get("lifecycle");
        handlers::check_lifecycle(&lifecycle, pod.grace, pod.os, errors);
        handlers::check_probes(&container, pod.grace, errors);
        check_restart_rules(&container, errors);
    }
    check_host_ports(list.items(), errors);
}

/// `initContainers` (`validateInitContainers`).
pub(super) fn check_init(list: &At<'_>, pod: &PodParts<'_>, errors: &mut Errors) {
    let mut names: BTreeSet<&str> = pod.containers.iter().copied().collect();
    for container in list.items() {
        check_common(&container, pod, errors);
        if container.get("restartPolicy").is_set() {
            check_restart_rules(&container, errors);
        } else if !container.get("restartPolicyRules").is_empty() {
            errors.required(&container.get("restartPolicy"), RULES_ALONE);
        }
        // Those without a name meet a container without one, but not each other.
        let name = container.get("name");
        if names.contains(name.text()) {
            errors.push(kubewright_meta::FieldError::duplicate(&name.path, name.text()));
        } else if !name.is_empty() {
            names.insert(name.text());
        }
        check_host_ports(std::iter::once(container.clone()), errors);
        let sidecar = container.get("restartPolicy").text() == "Always";
        if sidecar {
            handlers::check_lifecycle(&container.get("lifecycle"), pod.grace, pod.os, errors);
            handlers::check_probes(&container, pod.grace, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            let at = container.get(field);
            if at.is_set() {
                errors.forbidden(&at, "may not be set for init containers without restartPolicy=Always");
            }
        }
        for policy in container.get("resizePolicy").items().map(|policy| policy.get("restartPolicy")) {
            if policy.text() == "RestartContainer" && version::since(Version::V1_36) {
                errors
                    .invalid(&policy, "must not be set to 'RestartContainer' for non-sidecar initContainers");
            }
        }
    }
}

/// What an ephemeral container does not have of a container, in the order of Go's fields (`allowedEphemeralContainerFields`).
const UNSUITABLE_FOR_EPHEMERAL: &[&str] = &[
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// `ephemeralContainers` (`validateEphemeralContainers`).
pub(super) fn check_ephemeral(list: &At<'_>, init: &At<'_>, pod: &PodParts<'_>, errors: &mut Errors) {
    let others: BTreeSet<&str> = pod
        .containers
        .iter()
        .copied()
        .chain(init.items().map(|container| container.get("name").text()))
        .collect();
    let mut names = others.clone();
    for container in list.items() {
        check_common(&container, pod, errors);
        check_image_spaces(&container, errors);
        check_new_name(&container, &mut names, errors);
        let target = container.get("targetContainerName");
        if !target.is_empty() && !others.contains(target.text()) {
            errors.not_found(&target);
        }
        for field in UNSUITABLE_FOR_EPHEMERAL {
            let at = container.get(field);
            // Of a structure that is no pointer only what is in it tells that it was set.
            if at.is_set() && (*field != "resources" || !at.is_empty()) {
                errors.forbidden(&at, "cannot be set for an Ephemeral Container");
            }
        }
        for mount in container.get("volumeMounts").items() {
            for at in ["subPath", "subPathExpr"].map(|field| mount.get(field)) {
                if !at.is_empty() {
                    errors.forbidden(&at, "cannot be set for an Ephemeral Container");
                }
            }
        }
    }
}

/// An image with nothing around it (`validateContainerOnlyForPod`; templates may still have spaces).
pub(super) fn check_image_spaces(container: &At<'_>, errors: &mut Errors) {
    let image = container.get("image");
    if image.text() != image.text().trim() {
        errors.invalid(&image, "must not have leading or trailing whitespace");
    }
}

fn check_common(container: &At<'_>, pod: &PodParts<'_>, errors: &mut Errors) {
    errors.need_text(&container.get("name"), text::label);
    errors.need(&container.get("image"));
    errors.need_one_of(&container.get("terminationMessagePolicy"), &["File", "FallbackToLogsOnError"]);
    check_ports(&container.get("ports"), errors);
    env::check(&container.get("env"), errors);
    env::check_from(&container.get("envFrom"), errors);
    mounts::check(container, pod, errors);
    mounts::check_devices(container, pod, errors);
    errors.need_one_of(&container.get("imagePullPolicy"), &["Always", "IfNotPresent", "Never"]);
    resources::check_container(&container.get("resources"), &pod.claims, errors);
    check_resize(&container.get("resizePolicy"), pod, errors);
    security::check_container(&container.get("securityContext"), pod.host_users, errors);
}

/// A name that is no other's; not to have one is a name like any other.
fn check_new_name<'a>(container: &At<'a>, names: &mut BTreeSet<&'a str>, errors: &mut Errors) {
    let name = container.get("name");
    if !names.insert(name.text()) {
        errors.push(kubewright_meta::FieldError::duplicate(&name.path, name.text()));
    }
}

fn check_ports(ports: &At<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.get("name");
        if !name.is_empty() {
            let wrong = text::port_name(name.text());
            if wrong.is_empty() && !names.insert(name.text()) {
                errors.duplicate(&name);
            }
            for message in wrong {
                errors.invalid(&name, message);
            }
        }
        let number = port.get("containerPort");
        if number.number().unwrap_or_default() == 0 {
            errors.required(&number, "");
        } else {
            errors.port(&number);
        }
        let host = port.get("hostPort");
        if host.number().unwrap_or_default() != 0 {
            errors.port(&host);
        }
        errors.need_one_of(&port.get("protocol"), &["SCTP", "TCP", "UDP"]);
    }
}

fn check_host_ports<'a>(containers: impl Iterator<Item = At<'a>>, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for port in containers.flat_map(|container| container.get("ports").items()) {
        let host = port.get("hostPort");
        let Some(number) = host.number().filter(|number| *number != 0) else { continue };
        let key = format!("{}/{}/{number}", port.get("protocol").text(), port.get("hostIP").text());
        if !taken.insert(key.clone()) {
            errors.push(kubewright_meta::FieldError::duplicate(&host.path, key));
        }
    }
}

fn check_resize(policies: &At<'_>, pod: &PodParts<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for policy in policies.items() {
        let here = |field: &str| At { path: policies.path.clone(), ..policy.get(field) };
        let (resource, restart) = (here("resourceName"), here("restartPolicy"));
        if !seen.insert(resource.text()) {
            errors.push(kubewright_meta::FieldError::duplicate(&policy.path, resource.text()));
        }
        errors.need_one_of(&resource, &["cpu", "memory"]);
        errors.need_one_of(&restart, &["NotRequired", "RestartContainer"]);
        if pod.restart_policy == "Never" && restart.text() != "NotRequired" {
            errors.invalid_text(&restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
        }
    }
}

/// `restartPolicy` and `restartPolicyRules` of one container (`validateContainerRestartPolicy`).
fn check_restart_rules(container: &At<'_>, errors: &mut Errors) {
    let (policy, rules) = (container.get("restartPolicy"), container.get("restartPolicyRules"));
    if !policy.is_set() {
        if !rules.is_empty() {
            errors.required(&policy, RULES_ALONE);
        }
    } else {
        errors.one_of(&policy, &["Always", "Never", "OnFailure"]);
    }
    if rules.len() > 20 {
        errors.too_many(&rules, rules.len(), 20);
    }
    for rule in rules.items() {
        let actions = ["Restart", "RestartAllContainers"];
        let is_all = version::has_feature("RestartAllContainersOnContainerExits");
        errors.one_of(&rule.get("action"), if is_all { &actions } else { &actions[..1] });
        let codes = rule.get("exitCodes");
        if !codes.is_set() {
            errors.required(&codes, "must be specified");
            continue;
        }
        errors.one_of(&codes.get("operator"), &["In", "NotIn"]);
        let values = codes.get("values");
        if values.len() > 255 {
            errors.too_many(&values, values.len(), 255);
        }
    }
}
