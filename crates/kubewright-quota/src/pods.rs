//! Pods (`pkg/quota/v1/evaluator/core/pods.go`).

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kubewright_kinds::rules::pods::{qos_class, whole};
use kubewright_kinds::rules::resources::{is_extended, is_huge_pages, is_native};
use kubewright_meta::quantity::Quantity;
use kubewright_meta::resources::Resources;
use serde_json::Value;

use super::pod_totals;
use super::scope::{Operator, Requirement};

const NAMES: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
/// Every container has to say these where they are limited.
const NEEDED: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
/// How a quota names a device of a class, after `requests.`.
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

pub(super) fn matches_name(name: &str) -> bool {
    let extended =
        name.strip_prefix("requests.").is_some_and(|rest| !is_native(name) || rest.starts_with(DEVICE_CLASS));
    NAMES.contains(&name) || is_huge_pages(name) || name.starts_with("requests.hugepages-") || extended
}

/// What a pod uses. One that has ended, or should be gone by now, uses no more than its own place.
pub(super) fn usage(pod: &Value, now: Timestamp) -> Resources {
    let mut usage = if is_alive(pod, now) {
        compute(&pod_totals::requests(pod), &pod_totals::limits(pod))
    } else {
        Resources::default()
    };
    usage.set("count/pods", Quantity::count(1));
    usage
}

fn is_alive(pod: &Value, now: Timestamp) -> bool {
    if matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        return false;
    }
    let meta = &pod["metadata"];
    let asked = meta["deletionTimestamp"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let (Some(asked), Some(grace)) = (asked, meta["deletionGracePeriodSeconds"].as_i64()) else {
        return true;
    };
    asked.checked_add(SignedDuration::from_secs(grace)).is_ok_and(|end| now <= end)
}

/// How quotas name what containers ask for and are limited to.
fn compute(requests: &Resources, limits: &Resources) -> Resources {
    let mut usage = Resources::default();
    usage.set("pods", Quantity::count(1));
    for (name, amount) in requests.iter() {
        if matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge_pages(name) {
            usage.set(name, amount);
            usage.set(format!("requests.{name}"), amount);
        } else if is_extended(name) || name.starts_with(DEVICE_CLASS) {
            usage.set(format!("requests.{name}"), amount);
        }
    }
    for (name, amount) in
        limits.iter().filter(|(name, _)| matches!(*name, "cpu" | "memory" | "ephemeral-storage"))
    {
        usage.set(format!("limits.{name}"), amount);
    }
    usage
}

/// That each container says what is limited.
///
/// # Errors
/// What which containers do not say.
pub(super) fn check_constraints(pod: &Value, limited: &[&str]) -> Result<(), String> {
    if whole::is_set(pod) {
        return Ok(());
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in
        ["containers", "initContainers"].into_iter().flat_map(|list| pod["spec"][list].as_array()).flatten()
    {
        let resources = &container["resources"];
        let says = compute(&Resources::of(&resources["requests"]), &Resources::of(&resources["limits"]));
        for name in limited.iter().filter(|name| NEEDED.contains(name) && says.get(name).is_none()) {
            missing.entry(name).or_default().insert(container["name"].as_str().unwrap_or_default());
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let each = |(name, containers): (&str, BTreeSet<&str>)| {
        format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
    };
    Err(format!("must specify {}", missing.into_iter().map(each).collect::<Vec<_>>().join("; ")))
}

pub(super) fn is_in_scope(scope: &Requirement, pod: &Value) -> bool {
    match scope.name.as_str() {
        "Terminating" => has_deadline(pod),
        "NotTerminating" => !has_deadline(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => {
            let class = pod["spec"]["priorityClassName"].as_str().filter(|class| !class.is_empty());
            if scope.operator == Operator::Exists { class.is_some() } else { scope.matches(class) }
        }
        "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
        _ => false,
    }
}

/// Whether it has a time to end: what quotas call terminating.
pub(super) fn has_deadline(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

fn is_best_effort(pod: &Value) -> bool {
    let known = pod["status"]["qosClass"].as_str().filter(|class| !class.is_empty());
    known.unwrap_or_else(|| qos_class(pod)) == "BestEffort"
}

fn reaches_other_namespaces(pod: &Value) -> bool {
    let reaches = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|names| !names.is_empty())
            || term["namespaceSelector"].is_object()
    };
    let terms = |affinity: &Value, list: &str| affinity[list].as_array().cloned().unwrap_or_default();
    ["podAffinity", "podAntiAffinity"].into_iter().any(|kind| {
        let affinity = &pod["spec"]["affinity"][kind];
        terms(affinity, "requiredDuringSchedulingIgnoredDuringExecution").iter().any(reaches)
            || terms(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .any(|weighted| reaches(&weighted["podAffinityTerm"]))
    })
}
