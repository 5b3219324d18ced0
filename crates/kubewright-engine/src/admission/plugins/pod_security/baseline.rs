//! The checks of the baseline level, in the order of their identifiers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checks::{
    Check, Container, Finding, PodParts, bad_values, containers_named, names_where, plural, quoted, setters,
};

/// `appArmorProfile`, `capabilities_baseline`, `hostNamespaces`, `hostPathVolumes`, `hostPorts`,
/// `hostProbesAndHostLifecycle`, `privileged`, `procMount`, `seLinuxOptions`, `seccompProfile_baseline`, `sysctls`,
/// `windowsHostProcess`.
pub(super) static CHECKS: [Check; 12] = [
    Check { since: 0, replaced: None, run: app_armor },
    Check { since: 0, replaced: Some(22), run: capabilities },
    Check { since: 0, replaced: None, run: host_namespaces },
    Check { since: 0, replaced: Some(0), run: host_paths },
    Check { since: 0, replaced: None, run: host_ports },
    Check { since: 34, replaced: None, run: host_probes },
    Check { since: 0, replaced: None, run: privileged },
    Check { since: 0, replaced: Some(35), run: proc_mount },
    Check { since: 0, replaced: None, run: se_linux },
    Check { since: 0, replaced: Some(19), run: seccomp },
    Check { since: 0, replaced: None, run: sysctls },
    Check { since: 0, replaced: None, run: windows_host_process },
];

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Sysctls that are safe, and since when they are known to be.
const SYSCTLS: [(&str, u32); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];
/// SELinux types that may be set, and since when.
const SE_LINUX_TYPES: [(&str, u32); 5] = [
    ("", 0),
    ("container_t", 0),
    ("container_init_t", 0),
    ("container_kvm_t", 0),
    ("container_engine_t", 31),
];

fn app_armor(pod: &PodParts<'_>) -> Option<Finding> {
    const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
    let allowed =
        |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let (by_pod, containers, values) = bad_values(
        pod,
        |security| &security["appArmorProfile"],
        |kind| matches!(kind, "RuntimeDefault" | "Localhost"),
    );
    let annotations: BTreeSet<String> = pod
        .annotations()
        .filter(|(key, value)| key.starts_with(ANNOTATION) && !allowed(value))
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    let mut who: Vec<String> = setters(by_pod, &containers).into_iter().collect();
    if !annotations.is_empty() {
        who.push(plural(annotations.len(), "annotation", "annotations").to_owned());
    }
    if who.is_empty() {
        return None;
    }
    let all: Vec<&str> = values.into_iter().chain(annotations.iter().map(String::as_str)).collect();
    let reason = plural(all.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles");
    let detail = format!(
        "{} must not set AppArmor profile type to {}",
        who.join(" and "),
        quoted(all.iter().copied())
    );
    Some(Finding::of(reason, detail))
}

/// What a container adds that is not among these.
pub(super) fn added_capabilities<'a>(container: Container<'a>, allowed: &[&str]) -> Vec<&'a str> {
    let added = container.security()["capabilities"]["add"].as_array().into_iter().flatten();
    added.filter_map(Value::as_str).filter(|one| !allowed.contains(one)).collect()
}

fn capabilities(pod: &PodParts<'_>) -> Option<Finding> {
    let bad = names_where(pod, |container| !added_capabilities(container, &CAPABILITIES).is_empty());
    if bad.is_empty() {
        return None;
    }
    let added: BTreeSet<&str> =
        pod.containers().flat_map(|container| added_capabilities(container, &CAPABILITIES)).collect();
    let detail = format!(
        "{} must not include {} in securityContext.capabilities.add",
        containers_named(&bad),
        quoted(added)
    );
    Some(Finding::of("non-default capabilities", detail))
}

fn host_namespaces(pod: &PodParts<'_>) -> Option<Finding> {
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|field| pod.spec()[*field] == true)
        .map(|field| format!("{field}=true"))
        .collect();
    (!shared.is_empty()).then(|| Finding::of("host namespaces", shared.join(", ")))
}

fn host_paths(pod: &PodParts<'_>) -> Option<Finding> {
    let volumes = pod.spec()["volumes"].as_array().into_iter().flatten();
    let names: Vec<&str> = volumes
        .filter(|volume| volume["hostPath"].is_object())
        .filter_map(|volume| volume["name"].as_str())
        .collect();
    let detail = || format!("{} {}", plural(names.len(), "volume", "volumes"), quoted(names.iter().copied()));
    (!names.is_empty()).then(|| Finding::of("hostPath volumes", detail()))
}

fn host_ports(pod: &PodParts<'_>) -> Option<Finding> {
    fn ports(container: Container<'_>) -> Vec<String> {
        let ports = container.0["ports"].as_array().into_iter().flatten();
        let numbers = ports.filter_map(|port| port["hostPort"].as_i64()).filter(|port| *port != 0);
        numbers.map(|port| port.to_string()).collect()
    }
    let bad = names_where(pod, |container| !ports(container).is_empty());
    if bad.is_empty() {
        return None;
    }
    let used: BTreeSet<String> = pod.containers().flat_map(ports).collect();
    let detail = format!(
        "{} {} {} {}",
        containers_named(&bad),
        plural(bad.len(), "uses", "use"),
        plural(used.len(), "hostPort", "hostPorts"),
        used.into_iter().collect::<Vec<_>>().join(", ")
    );
    Some(Finding::of("hostPort", detail))
}

fn host_probes(pod: &PodParts<'_>) -> Option<Finding> {
    fn hosts(container: Container<'_>) -> Vec<&str> {
        let places = ["livenessProbe", "readinessProbe", "startupProbe"]
            .map(|probe| &container.0[probe])
            .into_iter()
            .chain(["postStart", "preStop"].map(|hook| &container.0["lifecycle"][hook]));
        let handlers = places.flat_map(|place| [&place["httpGet"], &place["tcpSocket"]]);
        handlers.filter_map(|handler| handler["host"].as_str()).filter(|host| !host.is_empty()).collect()
    }
    let bad: BTreeSet<&str> =
        names_where(pod, |container| !hosts(container).is_empty()).into_iter().collect();
    if bad.is_empty() {
        return None;
    }
    let bad: Vec<&str> = bad.into_iter().collect();
    let used: BTreeSet<&str> = pod.containers().flat_map(hosts).collect();
    let detail = format!(
        "{} {} {} {}",
        containers_named(&bad),
        plural(bad.len(), "uses", "use"),
        plural(used.len(), "probe or lifecycle host", "probe or lifecycle hosts"),
        quoted(used)
    );
    Some(Finding::of("probe or lifecycle host", detail))
}

fn privileged(pod: &PodParts<'_>) -> Option<Finding> {
    let bad = names_where(pod, |container| container.security()["privileged"] == true);
    let detail = || format!("{} must not set securityContext.privileged=true", containers_named(&bad));
    (!bad.is_empty()).then(|| Finding::of("privileged", detail()))
}

fn proc_mount(pod: &PodParts<'_>) -> Option<Finding> {
    if pod.minor >= 35 && pod.has_own_users() { None } else { masked_proc(pod) }
}

/// That `/proc` is mounted as usual.
pub(super) fn masked_proc(pod: &PodParts<'_>) -> Option<Finding> {
    fn kind(container: Container<'_>) -> Option<&str> {
        container.security()["procMount"].as_str().filter(|kind| *kind != "Default")
    }
    let bad = names_where(pod, |container| kind(container).is_some());
    if bad.is_empty() {
        return None;
    }
    let kinds: BTreeSet<&str> = pod.containers().filter_map(kind).collect();
    let detail =
        format!("{} must not set securityContext.procMount to {}", containers_named(&bad), quoted(kinds));
    Some(Finding::of("procMount", detail))
}

fn se_linux(pod: &PodParts<'_>) -> Option<Finding> {
    let minor = pod.minor;
    let is_allowed =
        |kind: &str| SE_LINUX_TYPES.iter().any(|(allowed, since)| *allowed == kind && *since <= minor);
    let mut types = BTreeSet::new();
    let mut set = [false; 2];
    let mut is_bad = |security: &Value| {
        let options = &security["seLinuxOptions"];
        let text = |field: &str| options[field].as_str().unwrap_or_default().to_owned();
        let kind = text("type");
        let wrong_type = !is_allowed(&kind);
        if wrong_type {
            types.insert(kind);
        }
        let given = ["user", "role"].map(|field| !text(field).is_empty());
        for (set, given) in set.iter_mut().zip(given) {
            *set |= given;
        }
        wrong_type || given.contains(&true)
    };
    let by_pod = is_bad(pod.security());
    let containers: Vec<&str> =
        pod.containers().filter(|container| is_bad(container.security())).map(Container::name).collect();
    let who = setters(by_pod, &containers)?;
    let mut data = Vec::new();
    if !types.is_empty() {
        let names = quoted(types.iter().map(String::as_str));
        data.push(format!("{} {names}", plural(types.len(), "type", "types")));
    }
    for (field, is_set) in ["user", "role"].into_iter().zip(set) {
        if is_set {
            data.push(format!("{field} may not be set"));
        }
    }
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {}", data.join("; "));
    Some(Finding::of("seLinuxOptions", detail))
}

/// Whether a seccomp profile is a safe one.
pub(super) fn is_safe_seccomp(kind: &str) -> bool {
    matches!(kind, "Localhost" | "RuntimeDefault")
}

fn seccomp(pod: &PodParts<'_>) -> Option<Finding> {
    if pod.minor < 19 {
        return seccomp_annotations(pod);
    }
    let (by_pod, containers, values) =
        bad_values(pod, |security| &security["seccompProfile"], is_safe_seccomp);
    let who = setters(by_pod, &containers)?;
    let detail = format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(values));
    Some(Finding::of("seccompProfile", detail))
}

/// Before there was a field, annotations said it.
fn seccomp_annotations(pod: &PodParts<'_>) -> Option<Finding> {
    let is_safe = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let keys: Vec<String> =
        std::iter::once("seccomp.security.alpha.kubernetes.io/pod".to_owned())
            .chain(pod.containers().map(|container| {
                format!("container.seccomp.security.alpha.kubernetes.io/{}", container.name())
            }))
            .collect();
    let bad: BTreeSet<String> = pod
        .annotations()
        .filter(|(key, value)| keys.iter().any(|known| known == key) && !is_safe(value))
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    if bad.is_empty() {
        return None;
    }
    let word = plural(bad.len(), "annotation", "annotations");
    let detail = format!("forbidden {word} {}", bad.into_iter().collect::<Vec<_>>().join(", "));
    Some(Finding::of("seccompProfile", detail))
}

fn sysctls(pod: &PodParts<'_>) -> Option<Finding> {
    let safe = |name: &str| SYSCTLS.iter().any(|(known, since)| *known == name && *since <= pod.minor);
    let set = pod.security()["sysctls"].as_array().into_iter().flatten();
    let bad: Vec<&str> =
        set.filter_map(|sysctl| sysctl["name"].as_str()).filter(|name| !safe(name)).collect();
    (!bad.is_empty()).then(|| Finding::of("forbidden sysctls", bad.join(", ")))
}

fn windows_host_process(pod: &PodParts<'_>) -> Option<Finding> {
    let is_bad = |security: &Value| security["windowsOptions"]["hostProcess"] == true;
    let containers = names_where(pod, |container| is_bad(container.security()));
    let who = setters(is_bad(pod.security()), &containers)?;
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Finding::of("hostProcess", detail))
}
