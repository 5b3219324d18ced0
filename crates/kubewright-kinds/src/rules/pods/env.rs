//! Environment variables of containers, and the fields and resources they refer to.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::quantity::Quantity;
use super::super::text;

/// The fields of a pod that a variable may take.
const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// The fields of a pod that a file of a downward API volume may hold.
pub(super) const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const MORE_FIELDS: [&str; 6] = [
    "metadata.annotations",
    "metadata.labels",
    "spec.host",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const BYTES: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// `env` (`ValidateEnv`).
pub(super) fn check(variables: &At<'_>, errors: &mut Errors) {
    for variable in variables.items() {
        errors.need_text(&variable.get("name"), text::env_name);
        check_source(&variable, errors);
    }
}

fn check_source(variable: &At<'_>, errors: &mut Errors) {
    let source = variable.get("valueFrom");
    if !source.is_set() {
        return;
    }
    let mut sources = 0;
    let mut given = |key: &str| Some(source.get(key)).filter(At::is_set).inspect(|_| sources += 1);
    if let Some(field) = given("fieldRef") {
        check_field(&field, &ENV_FIELDS, errors);
    }
    if let Some(resource) = given("resourceFieldRef") {
        check_resource(&resource, false, errors);
    }
    for key in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = given(key) {
            errors.text(&reference.get("name"), text::subdomain);
            errors.need_text(&reference.get("key"), text::config_key);
        }
    }
    if let Some(file) = given("fileKeyRef") {
        errors.need_text(&file.get("key"), text::env_name);
        errors.need_text(&file.get("volumeName"), text::label);
        if errors.need(&file.get("path")) {
            super::paths::check_no_backsteps(&file.get("path"), errors);
        }
    }
    if sources == 0 {
        errors.invalid_as(
            &source,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        );
    } else if !variable.get("value").is_empty() {
        errors.invalid_as(&source, "", "may not be specified when `value` is not empty");
    } else if sources > 1 {
        errors.invalid_as(&source, "", "may not have more than one field specified at a time");
    }
}

/// `envFrom` (`ValidateEnvFrom`).
pub(super) fn check_from(list: &At<'_>, errors: &mut Errors) {
    for source in list.items() {
        errors.maybe_text(&source.get("prefix"), text::env_name);
        let given: Vec<At<'_>> =
            ["configMapRef", "secretRef"].iter().map(|key| source.get(key)).filter(At::is_set).collect();
        for reference in &given {
            errors.need_text(&reference.get("name"), text::subdomain);
        }
        match given.len() {
            0 => errors.invalid_as(list, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid_as(list, "", "may not have more than one field specified at a time"),
        }
    }
}

/// A `fieldRef`: one of the fields, or one entry of the labels or annotations (`validateObjectFieldSelector`).
pub(super) fn check_field(field: &At<'_>, allowed: &[&str], errors: &mut Errors) {
    let path = field.get("fieldPath");
    if !errors.need(&field.get("apiVersion")) || !errors.need(&path) {
        return;
    }
    let wrong = |why: String| format!("error converting fieldPath: {why}");
    let version = field.get("apiVersion").text();
    if version != "v1" {
        errors.invalid_text(&path, wrong(format!("unsupported pod version: {version}")));
        return;
    }
    let label = path.text();
    match subscript(label) {
        Some(("metadata.annotations", key)) => errors.extend(qualified(field, &key.to_lowercase())),
        Some(("metadata.labels", key)) => errors.extend(qualified(field, key)),
        Some(_) => {
            errors.invalid_text(&path, wrong(format!("field label does not support subscript: {label}")));
        }
        None if !ENV_FIELDS.contains(&label) && !MORE_FIELDS.contains(&label) => {
            errors.invalid_text(&path, wrong(format!("field label not supported: {label}")));
        }
        None => {
            let known = if label == "spec.host" { "spec.nodeName" } else { label };
            if !allowed.contains(&known) {
                errors.not_supported(&path, allowed);
            }
        }
    }
}

fn qualified(at: &At<'_>, key: &str) -> Vec<kubewright_meta::FieldError> {
    text::label_key(key)
        .into_iter()
        .map(|message| kubewright_meta::FieldError::invalid(&at.path, key, message))
        .collect()
}

/// The parts of `metadata.labels['key']`.
fn subscript(label: &str) -> Option<(&str, &str)> {
    let (path, key) = label.strip_suffix("']")?.split_once("['")?;
    (!path.is_empty()).then_some((path, key))
}

/// A `resourceFieldRef` (`validateContainerResourceFieldSelector`); in a volume it also names the container.
pub(super) fn check_resource(reference: &At<'_>, in_volume: bool, errors: &mut Errors) {
    let resource = reference.get("resource");
    let name = resource.text();
    let huge = name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-");
    if in_volume && reference.get("containerName").is_empty() {
        errors.required(&reference.get("containerName"), "");
    } else if errors.need(&resource) && !huge {
        errors.one_of(&resource, &RESOURCES);
    }
    let divisor = reference.get("divisor");
    let Some(amount) = Quantity::of(divisor.value).filter(|amount| amount.sign().is_ne()) else { return };
    let (kind, allowed): (&str, &[&str]) = match name.split_once('.') {
        Some((_, "cpu")) => ("cpu", &["1m", "1"]),
        Some((_, "memory")) => ("memory", &BYTES),
        Some((_, "ephemeral-storage")) => ("local ephemeral storage", &BYTES),
        _ if huge => ("hugepages", &BYTES),
        _ => return,
    };
    if !allowed.contains(&amount.to_string().as_str()) {
        let listed = if kind == "cpu" { "1m and 1".to_owned() } else { BYTES.join(", ") };
        errors.invalid_as(
            &divisor,
            name,
            format!("only divisor's values {listed} are supported with the {kind} resource"),
        );
    }
}
