//! Security contexts of pods and containers.

use kubewright_meta::{FieldError, Problem};
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::printed::Shape::{Plain, Pointer};
use super::super::printed::{Fields, Shape};
use super::super::version;
use super::paths::check_descending;
use super::systems;

const LARGEST_ID: i64 = i32::MAX as i64;
const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
/// A container's security context as Go prints it.
const CONTEXT: Fields = &[
    (
        "Capabilities",
        "capabilities",
        Pointer(&[("Add", "add", Plain("null")), ("Drop", "drop", Plain("null"))]),
    ),
    ("Privileged", "privileged", Plain("null")),
    (
        "SELinuxOptions",
        "seLinuxOptions",
        Pointer(&[
            ("User", "user", EMPTY),
            ("Role", "role", EMPTY),
            ("Type", "type", EMPTY),
            ("Level", "level", EMPTY),
        ]),
    ),
    (
        "WindowsOptions",
        "windowsOptions",
        Pointer(&[
            ("GMSACredentialSpecName", "gmsaCredentialSpecName", Plain("null")),
            ("GMSACredentialSpec", "gmsaCredentialSpec", Plain("null")),
            ("RunAsUserName", "runAsUserName", Plain("null")),
            ("HostProcess", "hostProcess", Plain("null")),
        ]),
    ),
    ("RunAsUser", "runAsUser", Plain("null")),
    ("RunAsGroup", "runAsGroup", Plain("null")),
    ("RunAsNonRoot", "runAsNonRoot", Plain("null")),
    ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", Plain("null")),
    ("AllowPrivilegeEscalation", "allowPrivilegeEscalation", Plain("null")),
    ("ProcMount", "procMount", Plain("null")),
    ("SeccompProfile", "seccompProfile", Pointer(PROFILE)),
    ("AppArmorProfile", "appArmorProfile", Pointer(PROFILE)),
];
const PROFILE: Fields = &[("Type", "type", EMPTY), ("LocalhostProfile", "localhostProfile", Plain("null"))];
const EMPTY: Shape = Plain("\"\"");

/// A container's security context (`ValidateSecurityContext`). Privileged containers are allowed, as in a cluster
/// started with `--allow-privileged`.
pub(super) fn check_container(context: &At<'_>, host_users: bool, errors: &mut Errors) {
    if !context.is_set() {
        return;
    }
    check_ids(context, errors);
    let mount = context.get("procMount");
    errors.maybe_one_of(&mount, &["Default", "Unmasked"]);
    if host_users && mount.text() == "Unmasked" {
        errors.invalid(&mount, "`hostUsers` must be false to use `Unmasked`");
    }
    check_seccomp(&context.get("seccompProfile"), errors);
    if context.get("allowPrivilegeEscalation").value == &Value::Bool(false) {
        if context.get("privileged").is_true() {
            contradiction(context, "`privileged` to true", errors);
        }
        for capability in context.dig(&["capabilities", "add"]).items() {
            if capability.text() == "CAP_SYS_ADMIN" {
                contradiction(context, "`capabilities.Add` CAP_SYS_ADMIN", errors);
            }
        }
    }
    systems::check_options(&context.get("windowsOptions"), errors);
    check_app_armor(&context.get("appArmorProfile"), errors);
}

fn contradiction(context: &At<'_>, with: &str, errors: &mut Errors) {
    let detail = format!("cannot set `allowPrivilegeEscalation` to false and {with}");
    let error = FieldError::invalid(&context.path, Value::Null, detail);
    errors.push(error.printed(Shape::Struct(CONTEXT).of(context.value)));
}

/// A pod's security context (`validatePodSpecSecurityContext`).
pub(super) fn check_pod(spec: &At<'_>, errors: &mut Errors) {
    let context = spec.get("securityContext");
    if !context.is_set() {
        return;
    }
    errors.within(&context.get("fsGroup"), 0, LARGEST_ID);
    check_ids(&context, errors);
    for group in context.get("supplementalGroups").items() {
        errors.within(&group, 0, LARGEST_ID);
    }
    let share =
        At { path: format!("{}.shareProcessNamespace", context.path), ..spec.get("shareProcessNamespace") };
    if share.is_true() && spec.get("hostPID").is_true() {
        errors.invalid(&share, "ShareProcessNamespace and HostPID cannot both be enabled");
    }
    check_sysctls(&context.get("sysctls"), spec, errors);
    errors.maybe_one_of(&context.get("fsGroupChangePolicy"), &["Always", "OnRootMismatch"]);
    check_seccomp(&context.get("seccompProfile"), errors);
    systems::check_options(&context.get("windowsOptions"), errors);
    check_app_armor(&context.get("appArmorProfile"), errors);
    errors.maybe_one_of(&context.get("supplementalGroupsPolicy"), &["Merge", "Strict"]);
    let policies = if version::has_feature("SELinuxMount") { &POLICIES } else { &POLICIES[1..] };
    errors.maybe_one_of(&context.get("seLinuxChangePolicy"), policies);
}

/// How volumes may be labelled for SELinux.
const POLICIES: [&str; 2] = ["MountOption", "Recursive"];

/// A replacement of what had one of these policies may have any (`useOnlyRecursiveSELinuxChangePolicy` in `pkg/api/pod/util.go`).
/// `pod_spec`: where the spec of the pod stands in the object.
pub(in super::super) fn tolerate(errors: &mut Vec<FieldError>, old: &Value, pod_spec: &[&str]) {
    let place = || pod_spec.iter().chain(&["securityContext", "seLinuxChangePolicy"]);
    if place().fold(old, |at, key| &at[key]).is_null() {
        return;
    }
    let place = place().copied().collect::<Vec<_>>().join(".");
    errors.retain_mut(|error| match &error.problem {
        Problem::NotSupported(policy) if error.field == place => {
            let known = policy.as_str().is_some_and(|policy| POLICIES.contains(&policy));
            *error = FieldError::not_supported(&place, policy.clone(), POLICIES);
            !known
        }
        _ => true,
    });
}

fn check_ids(context: &At<'_>, errors: &mut Errors) {
    errors.within(&context.get("runAsUser"), 0, LARGEST_ID);
    errors.within(&context.get("runAsGroup"), 0, LARGEST_ID);
}

fn check_sysctls(list: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    let mut seen = std::collections::BTreeSet::new();
    for name in list.items().map(|sysctl| sysctl.get("name")) {
        let there = errors.need(&name);
        if there && !is_sysctl(name.text()) {
            let pattern = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.invalid(&name, format!("must have at most 253 characters and match regex {pattern}"));
        } else if there && !seen.insert(name.text()) {
            errors.duplicate(&name);
        }
        let text = name.text();
        if spec.get("hostNetwork").is_true() && text.replace('/', ".").starts_with("net.") {
            errors.invalid(&name, "may not be specified when 'hostNetwork' is true");
        }
        if spec.get("hostIPC").is_true() && is_ipc_sysctl(&text.replace('/', ".")) {
            errors.invalid(&name, "may not be specified when 'hostIPC' is true");
        }
    }
}

/// Whether it belongs to the namespace of inter-process communication.
fn is_ipc_sysctl(name: &str) -> bool {
    name == "kernel.sem"
        || ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|start| name.starts_with(start))
}

fn is_sysctl(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 253 && name.split(['.', '/']).all(|part| {
        let bytes = part.as_bytes();
        matches!((bytes.first(), bytes.last()), (Some(&first), Some(&last)) if plain(first) && plain(last))
            && bytes.iter().all(|&byte| plain(byte) || byte == b'-' || byte == b'_')
    })
}

fn check_seccomp(profile: &At<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.get("type"), profile.get("localhostProfile"));
    if kind.is_empty() {
        errors.required(&kind, "type is required when seccompProfile is set");
    } else {
        errors.one_of(&kind, &PROFILES);
    }
    match (kind.text() == "Localhost", file.is_set()) {
        (true, false) => errors.required(&file, "must be set when seccomp type is Localhost"),
        (true, true) => check_descending(&file, errors),
        (false, true) => {
            let error = FieldError::invalid(
                &file.path,
                Value::Null,
                "can only be set when seccomp type is Localhost",
            );
            errors.push(error.printed(format!(
                "{{\"Type\":{},\"LocalhostProfile\":{}}}",
                Value::from(kind.text()),
                file.value
            )));
        }
        (false, false) => {}
    }
}

fn check_app_armor(profile: &At<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.get("type"), profile.get("localhostProfile"));
    match kind.text() {
        "" => errors.required(&kind, "type is required when appArmorProfile is set"),
        "Localhost" if file.text().is_empty() => {
            errors.required(&file, "must be set when AppArmor type is Localhost");
        }
        "Localhost" if file.text() != file.text().trim() => {
            errors.invalid(&file, "must not be padded with whitespace");
        }
        "Localhost" if file.text().len() > 4095 => errors.push(FieldError::too_long(&file.path, 4095)),
        "Localhost" => {}
        "RuntimeDefault" | "Unconfined" if file.is_set() => {
            errors.invalid(&file, "can only be set when AppArmor type is Localhost");
        }
        _ => errors.one_of(&kind, &PROFILES),
    }
}
