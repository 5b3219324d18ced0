//! The checks of a standard, and what they find (`k8s.io/pod-security-admission/policy`).

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::policy::{Level, Standard};
use super::{baseline, restricted};

/// A pod under the rules of a version.
pub(super) struct PodParts<'a> {
    /// The pod, or a template of pods.
    pod: &'a Value,
    /// The minor version of the rules.
    pub minor: u32,
}

impl<'a> PodParts<'a> {
    pub(super) fn spec(&self) -> &'a Value {
        &self.pod["spec"]
    }

    /// The annotations, by key.
    pub(super) fn annotations(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let all = self.pod["metadata"]["annotations"].as_object().into_iter().flatten();
        all.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    /// All containers: those that begin, the ordinary, and those added later.
    pub(super) fn containers(&self) -> impl Iterator<Item = Container<'a>> + use<'a> {
        let spec = self.spec();
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists.into_iter().filter_map(|list| spec[list].as_array()).flatten().map(Container)
    }

    /// The security context of the pod as a whole.
    pub(super) fn security(&self) -> &'a Value {
        &self.spec()["securityContext"]
    }

    /// Whether it says that it is for Windows, where some of the settings do not exist.
    pub(super) fn is_for_windows(&self) -> bool {
        self.spec()["os"]["name"] == "windows"
    }

    /// Whether its users are its own, and root in it is nobody outside.
    pub(super) fn has_own_users(&self) -> bool {
        self.spec()["hostUsers"] == false
    }
}

/// A container of a pod.
#[derive(Clone, Copy)]
pub(super) struct Container<'a>(pub &'a Value);

impl<'a> Container<'a> {
    pub(super) fn name(self) -> &'a str {
        self.0["name"].as_str().unwrap_or_default()
    }

    /// Its security context.
    pub(super) fn security(self) -> &'a Value {
        &self.0["securityContext"]
    }
}

/// What a check has against a pod.
#[derive(Debug, PartialEq)]
pub(super) struct Finding {
    /// In short.
    pub reason: String,
    /// Where.
    pub detail: String,
}

impl Finding {
    pub(super) fn of(reason: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { reason: reason.into(), detail: detail.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.detail)
    }
}

/// A check of a level.
pub(super) struct Check {
    /// The first minor version that has it.
    pub since: u32,
    /// The first minor version in which the restricted level has a stricter check in its place.
    pub replaced: Option<u32>,
    /// The check.
    pub run: fn(&PodParts<'_>) -> Option<Finding>,
}

/// What a pod has against a standard.
pub(super) fn evaluate(standard: Standard, pod: &Value) -> Vec<Finding> {
    let minor = standard.version.minor();
    let parts = PodParts { pod, minor };
    let strict = standard.level == Level::Restricted;
    let checks: &[&[Check]] = match standard.level {
        Level::Privileged => &[],
        Level::Baseline => &[&baseline::CHECKS],
        Level::Restricted => &[&baseline::CHECKS, &restricted::CHECKS],
    };
    let in_force = |check: &&Check| {
        check.since <= minor && !(strict && check.replaced.is_some_and(|replaced| replaced <= minor))
    };
    checks.iter().copied().flatten().filter(in_force).filter_map(|check| (check.run)(&parts)).collect()
}

/// Texts in quotes, one after the other.
pub(super) fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    items.into_iter().map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(", ")
}

/// The word for one, or for several.
pub(super) fn plural<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// `container "a"` or `containers "a", "b"`.
pub(super) fn containers_named(names: &[&str]) -> String {
    format!("{} {}", plural(names.len(), "container", "containers"), quoted(names.iter().copied()))
}

/// Who has set something: the pod, containers, or both.
pub(super) fn setters(pod: bool, containers: &[&str]) -> Option<String> {
    match (pod, containers.is_empty()) {
        (false, true) => None,
        (true, true) => Some("pod".to_owned()),
        (false, false) => Some(containers_named(containers)),
        (true, false) => Some(format!("pod and {}", containers_named(containers))),
    }
}

/// The names of the containers for which something holds.
pub(super) fn names_where<'a>(pod: &PodParts<'a>, bad: impl Fn(Container<'a>) -> bool) -> Vec<&'a str> {
    pod.containers().filter(|container| bad(*container)).map(Container::name).collect()
}

/// What of `values` is not in order, of the pod and of its containers: who set it, and to what.
pub(super) fn bad_values<'a>(
    pod: &PodParts<'a>,
    at: fn(&'a Value) -> &'a Value,
    is_good: impl Fn(&str) -> bool,
) -> (bool, Vec<&'a str>, BTreeSet<&'a str>) {
    let bad = |security: &'a Value| {
        let value = at(security);
        (!value.is_null()).then(|| value["type"].as_str().unwrap_or_default()).filter(|value| !is_good(value))
    };
    let of_pod = bad(pod.security());
    let mut values: BTreeSet<&str> = of_pod.into_iter().collect();
    let mut names = Vec::new();
    for container in pod.containers() {
        if let Some(value) = bad(container.security()) {
            names.push(container.name());
            values.insert(value);
        }
    }
    (of_pod.is_some(), names, values)
}
