//! The checks of the restricted level, in the order of their identifiers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::baseline::{added_capabilities, is_safe_seccomp, masked_proc};
use super::checks::{
    Check, Container, Finding, PodParts, bad_values, containers_named, names_where, plural, quoted, setters,
};

/// `allowPrivilegeEscalation`, `capabilities_restricted`, `procMount_restricted`, `restrictedVolumes`, `runAsNonRoot`,
/// `runAsUser`, `seccompProfile_restricted`.
pub(super) static CHECKS: [Check; 7] = [
    Check { since: 8, replaced: None, run: privilege_escalation },
    Check { since: 22, replaced: None, run: capabilities },
    Check { since: 35, replaced: None, run: masked_proc },
    Check { since: 0, replaced: None, run: volumes },
    Check { since: 0, replaced: None, run: run_as_non_root },
    Check { since: 23, replaced: None, run: run_as_user },
    Check { since: 19, replaced: None, run: seccomp },
];

const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
const OTHER_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

/// Since 1.25 a pod for Windows need not set what Windows does not have.
fn is_exempt(pod: &PodParts<'_>) -> bool {
    pod.minor >= 25 && pod.is_for_windows()
}

fn privilege_escalation(pod: &PodParts<'_>) -> Option<Finding> {
    if is_exempt(pod) {
        return None;
    }
    let bad = names_where(pod, |container| container.security()["allowPrivilegeEscalation"] != false);
    let detail =
        || format!("{} must set securityContext.allowPrivilegeEscalation=false", containers_named(&bad));
    (!bad.is_empty()).then(|| Finding::of("allowPrivilegeEscalation != false", detail()))
}

fn capabilities(pod: &PodParts<'_>) -> Option<Finding> {
    const ALLOWED: [&str; 1] = ["NET_BIND_SERVICE"];
    if is_exempt(pod) {
        return None;
    }
    let drops_all = |container: Container<'_>| {
        container.security()["capabilities"]["drop"]
            .as_array()
            .is_some_and(|list| list.iter().any(|one| one == "ALL"))
    };
    let keeping = names_where(pod, |container| !drops_all(container));
    let adding = names_where(pod, |container| !added_capabilities(container, &ALLOWED).is_empty());
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            containers_named(&keeping)
        ));
    }
    if !adding.is_empty() {
        let added: BTreeSet<&str> =
            pod.containers().flat_map(|container| added_capabilities(container, &ALLOWED)).collect();
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers_named(&adding),
            quoted(added)
        ));
    }
    (!details.is_empty()).then(|| Finding::of("unrestricted capabilities", details.join("; ")))
}

fn volumes(pod: &PodParts<'_>) -> Option<Finding> {
    let has = |volume: &Value, kinds: &[&'static str]| {
        kinds.iter().copied().find(|kind| volume.get(*kind).is_some_and(|source| !source.is_null()))
    };
    let mut names = Vec::new();
    let mut kinds = BTreeSet::new();
    for volume in pod.spec()["volumes"].as_array().into_iter().flatten() {
        if has(volume, &VOLUMES).is_none() {
            names.push(volume["name"].as_str().unwrap_or_default());
            kinds.insert(has(volume, &OTHER_VOLUMES).unwrap_or("unknown"));
        }
    }
    if names.is_empty() {
        return None;
    }
    let detail = format!(
        "{} {} {} {} {}",
        plural(names.len(), "volume", "volumes"),
        quoted(names.iter().copied()),
        plural(names.len(), "uses", "use"),
        plural(kinds.len(), "restricted volume type", "restricted volume types"),
        quoted(kinds)
    );
    Some(Finding::of("restricted volume types", detail))
}

fn run_as_non_root(pod: &PodParts<'_>) -> Option<Finding> {
    const REASON: &str = "runAsNonRoot != true";
    if pod.minor >= 35 && pod.has_own_users() {
        return None;
    }
    let of_pod = &pod.security()["runAsNonRoot"];
    let explicit = names_where(pod, |container| container.security()["runAsNonRoot"] == false);
    if let Some(who) = setters(*of_pod == false, &explicit) {
        return Some(Finding::of(REASON, format!("{who} must not set securityContext.runAsNonRoot=false")));
    }
    let silent = |container: Container<'_>| !container.security()["runAsNonRoot"].is_boolean();
    let implicit = if *of_pod == true { Vec::new() } else { names_where(pod, silent) };
    let detail =
        || format!("pod or {} must set securityContext.runAsNonRoot=true", containers_named(&implicit));
    (!implicit.is_empty()).then(|| Finding::of(REASON, detail()))
}

fn run_as_user(pod: &PodParts<'_>) -> Option<Finding> {
    if pod.minor >= 35 && pod.has_own_users() {
        return None;
    }
    let is_root = |security: &Value| security["runAsUser"] == 0;
    let containers = names_where(pod, |container| is_root(container.security()));
    let who = setters(is_root(pod.security()), &containers)?;
    Some(Finding::of("runAsUser=0", format!("{who} must not set runAsUser=0")))
}

fn seccomp(pod: &PodParts<'_>) -> Option<Finding> {
    const REASON: &str = "seccompProfile";
    if is_exempt(pod) {
        return None;
    }
    let (by_pod, containers, values) =
        bad_values(pod, |security| &security["seccompProfile"], is_safe_seccomp);
    if let Some(who) = setters(by_pod, &containers) {
        let detail = format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(values));
        return Some(Finding::of(REASON, detail));
    }
    if pod.security()["seccompProfile"].is_object() {
        return None;
    }
    let silent = names_where(pod, |container| !container.security()["seccompProfile"].is_object());
    let detail = || {
        format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
            containers_named(&silent)
        )
    };
    (!silent.is_empty()).then(|| Finding::of(REASON, detail()))
}
