//! Warnings of pods and their templates (`pkg/api/pod/warnings.go`).

use std::collections::{BTreeMap, BTreeSet};

use super::super::at::At;
use super::super::text;
use super::{WarningContext, addresses, deprecated_label, of_expressions, of_name, overlaps, storage};

/// Kinds of volumes that are gone: the field, what the warning calls it, and since when.
const GONE: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// A pod; only a new one, as people hardly change pods by hand.
pub(crate) fn of_pod(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    if subject.is_new() {
        of_name(subject, "the Pod's hostname", out);
        of_spec(&subject.new, true, out);
    }
}

/// A template of pods.
pub(super) fn of_template(template: &At<'_>, out: &mut Vec<String>) {
    if template.is_set() {
        of_spec(template, false, out);
    }
}

fn of_spec(pod: &At<'_>, real: bool, out: &mut Vec<String>) {
    let (spec, annotations) = (pod.get("spec"), pod.dig(&["metadata", "annotations"]));
    of_placement(&spec, out);
    of_annotations(&annotations, out);
    of_volumes(&spec.get("volumes"), out);
    of_doubles(&spec.get("hostAliases"), "ip", out);
    of_doubles(&spec.get("imagePullSecrets"), "name", out);
    for name in spec.get("imagePullSecrets").items().map(|secret| secret.get("name")) {
        if name.is_empty() {
            out.push(format!("{}: invalid empty name \"\"", name.path));
        }
    }
    for resource in ["memory", "ephemeral-storage"] {
        storage::of_bytes(&spec.get("overhead").entry(resource), out);
    }
    let seccomp = annotations.entry("seccomp.security.alpha.kubernetes.io/pod");
    if seccomp.is_set() && !spec.dig(&["securityContext", "seccompProfile"]).is_set() {
        out.push(format!(
            "{}: non-functional in v1.27+; use the \"seccompProfile\" field instead",
            seccomp.path
        ));
    }
    for container in containers(&spec) {
        of_container(&container, &spec, &annotations, real, out);
    }
    of_ports(&spec, out);
    if spec.get("terminationGracePeriodSeconds").number().is_some_and(|seconds| seconds < 0) {
        out.push(format!("{}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1", spec.path));
    }
    of_affinity(&spec.get("affinity"), out);
    for server in spec.dig(&["dnsConfig", "nameservers"]).items() {
        addresses::of_ip(&server, out);
    }
    for alias in spec.get("hostAliases").items() {
        addresses::of_ip(&alias.get("ip"), out);
    }
}

/// All containers, in the order in which Kubernetes visits them.
fn containers<'a>(spec: &At<'a>) -> Vec<At<'a>> {
    ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|list| spec.get(list).items())
        .collect()
}

fn of_placement(spec: &At<'_>, out: &mut Vec<String>) {
    for (key, at) in spec.get("nodeSelector").entries() {
        if let Some(why) = deprecated_label(key) {
            out.push(format!("{}: {why}", at.path));
        }
    }
    let node = spec.dig(&["affinity", "nodeAffinity"]);
    for term in node.get(REQUIRED).get("nodeSelectorTerms").items() {
        of_expressions(&term.get("matchExpressions"), out);
    }
    for term in node.get(PREFERRED).items() {
        let expressions = term.dig(&["preference", "matchExpressions"]);
        of_expressions(&expressions, out);
        for value in expressions.items().flat_map(|expression| expression.get("values").items()) {
            for why in text::label_value(value.text()) {
                out.push(format!("{}: {} is invalid, {why}", value.path, value.text()));
            }
        }
    }
    for constraint in spec.get("topologySpreadConstraints").items() {
        let key = constraint.get("topologyKey");
        if let Some(why) = deprecated_label(key.text()) {
            out.push(format!("{}: {} is {why}", key.path, key.text()));
        }
        if !constraint.get("labelSelector").is_set() {
            out.push(format!("{}.labelSelector: {NO_SELECTOR}", constraint.path));
        }
    }
}

fn of_annotations(annotations: &At<'_>, out: &mut Vec<String>) {
    for (key, since, field) in [
        ("scheduler.alpha.kubernetes.io/critical-pod", "v1.16+", "priorityClassName"),
        ("security.alpha.kubernetes.io/sysctls", "v1.11+", "sysctls"),
        ("security.alpha.kubernetes.io/unsafe-sysctls", "v1.11+", "sysctls"),
    ] {
        let at = annotations.entry(key);
        if at.is_set() {
            out.push(format!("{}: non-functional in {since}; use the {field:?} field instead", at.path));
        }
    }
}

fn of_volumes(volumes: &At<'_>, out: &mut Vec<String>) {
    for volume in volumes.items() {
        for (field, called, why) in GONE.iter().filter(|(field, ..)| volume.get(field).is_set()) {
            // A claim's template is looked at in between.
            if matches!(*field, "cephfs" | "rbd") {
                continue;
            }
            out.push(format!("{}.{called}: {why}", volume.path));
        }
        storage::of_claim_spec(&volume.dig(&["ephemeral", "volumeClaimTemplate", "spec"]), out);
        for (field, called, why) in &GONE[7..] {
            if volume.get(field).is_set() {
                out.push(format!("{}.{called}: {why}", volume.path));
            }
        }
    }
    for volume in volumes.items() {
        overlaps::of_volume(&volume, out);
    }
}

fn of_doubles(list: &At<'_>, field: &str, out: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for at in list.items().map(|item| item.get(field)) {
        if !seen.insert(at.text()) {
            out.push(format!("{}: duplicate {field} {:?}", at.path, at.text()));
        }
    }
}

/// A container of a template, or (`real`) of a pod, which is warned of profiles of AppArmor before.
fn of_container(container: &At<'_>, spec: &At<'_>, annotations: &At<'_>, real: bool, out: &mut Vec<String>) {
    let (name, context) = (container.get("name"), container.get("securityContext"));
    let seccomp =
        annotations.entry(&format!("container.seccomp.security.alpha.kubernetes.io/{}", name.text()));
    if seccomp.is_set() && !context.get("seccompProfile").is_set() {
        out.push(format!(
            "{}: non-functional in v1.27+; use the \"seccompProfile\" field instead",
            seccomp.path
        ));
    }
    let armor = annotations.entry(&format!("container.apparmor.security.beta.kubernetes.io/{}", name.text()));
    let of_the_pod = spec.dig(&["securityContext", "appArmorProfile"]);
    let is_told = real || context.get("appArmorProfile").is_set();
    if armor.is_set() && !is_told && armor_annotation(&of_the_pod).as_deref() != Some(armor.text()) {
        out.push(format!(
            "{}: deprecated since v1.30; use the \"appArmorProfile\" field instead",
            armor.path
        ));
    }
    for resource in ["memory", "ephemeral-storage"] {
        for list in ["limits", "requests"] {
            storage::of_bytes(&container.dig(&["resources", list]).entry(resource), out);
        }
    }
    of_variables(&container.get("env"), out);
}

/// The annotation that says the same as a profile.
fn armor_annotation(profile: &At<'_>) -> Option<String> {
    match profile.get("type").text() {
        "RuntimeDefault" => Some("runtime/default".to_owned()),
        "Unconfined" => Some("unconfined".to_owned()),
        "Localhost" => Some(format!("localhost/{}", profile.get("localhostProfile").text())),
        _ => None,
    }
}

fn of_variables(variables: &At<'_>, out: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for variable in variables.items() {
        let name = variable.get("name").text();
        if seen.insert(name) {
            continue;
        }
        let (value, itself) = (variable.get("value").text(), format!("$({name})"));
        if variable.get("valueFrom").is_set() || value == itself || !value.contains(&itself) {
            out.push(format!(
                "{}: hides previous definition of {name:?}, which may be dropped when using apply",
                variable.path
            ));
        }
    }
}

fn of_ports(spec: &At<'_>, out: &mut Vec<String>) {
    let ports = || containers(spec).into_iter().flat_map(|container| container.get("ports").items());
    let mut seen: BTreeMap<(i64, &str), Vec<At<'_>>> = BTreeMap::new();
    let host = |port: &At<'_>| port.get("hostPort").number().unwrap_or_default();
    for port in ports() {
        let ip = port.get("hostIP").text();
        if !ip.is_empty() && host(&port) == 0 {
            let (name, number) =
                (port.get("name").text(), port.get("containerPort").number().unwrap_or_default());
            out.push(format!(
                "{}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{number} Protocol:{} HostIP:{ip}}}",
                port.path,
                port.get("protocol").text()
            ));
        }
        let key = (port.get("containerPort").number().unwrap_or_default(), port.get("protocol").text());
        let others = seen.entry(key).or_default();
        for other in others.iter() {
            let (mine, its) = (host(&port), host(other));
            let other_ip = other.get("hostIP").text();
            let clash = if ip == other_ip && mine == its {
                "duplicate port definition"
            } else if mine == 0 || its == 0 {
                "overlapping port definition"
            } else if mine == its && ip.is_empty() != other_ip.is_empty() {
                "dangerously ambiguous port definition"
            } else {
                continue;
            };
            out.push(format!("{}: {clash} with {}", port.path, other.path));
        }
        others.push(port);
    }
    let mut named: BTreeMap<&str, String> = BTreeMap::new();
    for port in ports().filter(|port| !port.get("name").is_empty()) {
        let name = port.get("name").text();
        if let Some(other) = named.get(name) {
            out.push(format!("{}: duplicate port name {name:?} with {other}, services and probes that select ports by name will use {other}", port.path));
        } else {
            named.insert(name, port.path.clone());
        }
    }
}

fn of_affinity(affinity: &At<'_>, out: &mut Vec<String>) {
    for kind in ["podAffinity", "podAntiAffinity"].map(|kind| affinity.get(kind)) {
        let required = kind.get(REQUIRED).items().map(|term| term.get("labelSelector"));
        let preferred =
            kind.get(PREFERRED).items().map(|term| term.dig(&["podAffinityTerm", "labelSelector"]));
        for selector in required.chain(preferred).filter(|selector| !selector.is_set()) {
            out.push(format!("{}: {NO_SELECTOR}", selector.path));
        }
    }
}
