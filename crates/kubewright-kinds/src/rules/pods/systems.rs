//! What pods of one operating system may not ask for (`validateLinux`, `validateWindows`), and the options of Windows.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::text;

const NOT_WINDOWS: &str = "cannot be set for a windows pod";
const NOT_LINUX: &str = "windows options cannot be set for a linux pod";
/// Fields of a pod's spec (`true`) and of its security context, in Kubernetes' order.
const POD_FIELDS: [(&str, bool); 15] = [
    ("appArmorProfile", false),
    ("seLinuxOptions", false),
    ("hostUsers", true),
    ("hostPID", true),
    ("hostIPC", true),
    ("seccompProfile", false),
    ("fsGroup", false),
    ("fsGroupChangePolicy", false),
    ("sysctls", false),
    ("shareProcessNamespace", true),
    ("runAsUser", false),
    ("runAsGroup", false),
    ("supplementalGroups", false),
    ("supplementalGroupsPolicy", false),
    ("seLinuxChangePolicy", false),
];
/// Fields of a container's security context, in Kubernetes' order.
const CONTAINER_FIELDS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];
/// How large a credential spec may be, and how long the parts of a user's name.
const CREDENTIAL_SPEC: usize = 64 * 1024;
const DOMAIN: usize = 256;
const USER: usize = 104;

/// All containers, in the order in which Kubernetes visits them.
pub(super) fn containers<'a>(spec: &At<'a>) -> impl Iterator<Item = At<'a>> {
    let lists = ["initContainers", "containers", "ephemeralContainers"].map(|list| spec.get(list));
    lists.into_iter().flat_map(|list| list.items())
}

/// Checks a pod that says which system it is for.
pub(super) fn check(spec: &At<'_>, errors: &mut Errors) {
    let os = spec.get("os");
    if !os.is_set() || !errors.need(&os.get("name")) {
        return;
    }
    let context = spec.get("securityContext");
    match os.get("name").text() {
        "linux" => {
            for of in [context].into_iter().chain(containers(spec).map(|one| one.get("securityContext"))) {
                if of.get("windowsOptions").is_set() {
                    errors.forbidden(&of.get("windowsOptions"), NOT_LINUX);
                }
            }
        }
        "windows" => check_windows(spec, &context, errors),
        _ => errors.not_supported(&At { path: os.path.clone(), ..os.get("name") }, &["linux", "windows"]),
    }
}

fn check_windows(spec: &At<'_>, context: &At<'_>, errors: &mut Errors) {
    for (field, of_spec) in POD_FIELDS {
        let at = if of_spec { spec.get(field) } else { context.get(field) };
        let given = match field {
            "hostPID" | "hostIPC" => at.is_true(),
            "sysctls" => !at.is_empty(),
            _ => at.is_set(),
        };
        if given && (context.is_set() || of_spec) {
            errors.forbidden(&at, NOT_WINDOWS);
        }
    }
    for of in containers(spec).map(|one| one.get("securityContext")) {
        for at in CONTAINER_FIELDS.map(|field| of.get(field)).iter().filter(|at| at.is_set()) {
            errors.forbidden(at, NOT_WINDOWS);
        }
    }
}

/// Containers that run as processes of a Windows node: all of a pod or none, and in the network of the node
/// (`validateWindowsHostProcessPod`).
pub(super) fn check_host_processes(spec: &At<'_>, errors: &mut Errors) {
    let of = |owner: &At<'_>| {
        let at = owner.dig(&["securityContext", "windowsOptions", "hostProcess"]);
        at.value.as_bool()
    };
    let of_pod = of(spec);
    let (mut all, mut processes) = (0, 0);
    for container in containers(spec) {
        let own = of(&container);
        if let (Some(pod), Some(own)) = (of_pod, own)
            && pod != own
        {
            let at = container.dig(&["securityContext", "windowsOptions", "hostProcess"]);
            let detail = format!("pod hostProcess value must be identical if both are specified, was {pod}");
            errors.invalid(&at, detail);
        }
        all += 1;
        processes += usize::from(own.or(of_pod) == Some(true));
    }
    if processes == 0 {
        return;
    }
    if processes != all {
        let detail =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.invalid_as(spec, "", detail);
    }
    if !spec.get("hostNetwork").is_true() {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid_as(&spec.get("hostNetwork"), false, detail);
    }
}

/// `windowsOptions` of a pod or container (`validateWindowsSecurityContextOptions`).
pub(super) fn check_options(options: &At<'_>, errors: &mut Errors) {
    let (name, credentials, user) = (
        options.get("gmsaCredentialSpecName"),
        options.get("gmsaCredentialSpec"),
        options.get("runAsUserName"),
    );
    if name.is_set() {
        errors.text(&name, text::subdomain);
    }
    if credentials.is_set() && credentials.is_empty() {
        errors.invalid(&credentials, "gmsaCredentialSpec cannot be an empty string");
    } else if credentials.text().len() > CREDENTIAL_SPEC {
        errors.invalid(&credentials, "gmsaCredentialSpec size must be under 64 KiB");
    }
    if user.is_set() {
        check_user(&user, errors);
    }
}

fn check_user(at: &At<'_>, errors: &mut Errors) {
    let whole = at.text();
    let (domain, user) = match whole.split('\\').collect::<Vec<_>>().as_slice() {
        _ if whole.is_empty() => {
            errors.invalid(at, "runAsUserName cannot be an empty string");
            return;
        }
        _ if whole.bytes().any(|byte| byte.is_ascii_control()) => {
            errors.invalid(at, "runAsUserName cannot contain control characters");
            return;
        }
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => {
            errors.invalid(at, "runAsUserName cannot contain more than one backslash");
            return;
        }
    };
    if let Some(domain) = domain {
        if domain.len() >= DOMAIN {
            let detail = format!("runAsUserName's Domain length must be under {DOMAIN} characters");
            errors.invalid(at, detail);
        }
        if !is_net_bios(domain) && !is_domain(domain) {
            errors.invalid(at, "runAsUserName's Domain doesn't match the NetBios nor the DNS format");
        }
    }
    if user.is_empty() {
        errors.invalid(at, "runAsUserName's User cannot be empty");
    } else if user.len() > USER {
        let detail = format!("runAsUserName's User length must not be longer than {USER} characters");
        errors.invalid(at, detail);
    }
    if !user.is_empty() && user.bytes().all(|byte| byte == b'.' || byte == b' ') {
        errors.invalid(at, "runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(|one: char| "\"/\\:;|=,+*?<>@[]".contains(one)) {
        errors
            .invalid(at, "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
}

/// At most 15 characters, of which some are not allowed, and no dot at the start.
fn is_net_bios(domain: &str) -> bool {
    let allowed = |one: char| !"\\/:*?\"<>|".contains(one) && one != '.';
    let count = domain.chars().count();
    (1..=15).contains(&count)
        && domain.chars().next().is_some_and(allowed)
        && domain.chars().all(|one| !"\\/:*?\"<>|".contains(one))
}

/// Labels of letters, digits and dashes, of which there may be none after the last dot.
fn is_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    domain.strip_suffix('.').unwrap_or(domain).split('.').all(is_label)
}
