//! Annotations that mean something to pods (`ValidatePodSpecificAnnotations`).

use std::cell::OnceCell;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::at::At;
use super::super::errors::Errors;
use super::super::fill;
use super::{seccomp, systems};

const MIRROR: &str = "kubernetes.io/config.mirror";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Checks the annotations of a pod or template.
pub(super) fn check(annotations: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    let mirror = annotations.entry(MIRROR);
    if mirror.is_set() && spec.get("nodeName").is_empty() {
        errors.invalid(&mirror, "must set spec.nodeName if mirror pod annotation is set");
    }
    let cost = annotations.entry(DELETION_COST);
    if cost.is_set() && !is_cost(cost.text()) {
        errors.invalid(&cost, "must be a 32bit integer");
    }
    seccomp::check(annotations, errors);
    check_app_armor(annotations, spec, errors);
}

/// Writes AppArmor's profiles, which old clients tell in annotations, into the fields of new pods
/// (`applyAppArmorVersionSkew`).
pub(super) fn profiles_from(pod: &mut Value) {
    let Some(notes) = pod["metadata"]["annotations"].as_object() else { return };
    let told: Vec<(String, Value)> = notes
        .iter()
        .filter_map(|(key, text)| Some((key.strip_prefix(APP_ARMOR)?.to_owned(), profile(text.as_str()?)?)))
        .collect();
    let spec = At::root(pod).get("spec");
    if told.is_empty() || spec.dig(&["os", "name"]).text() == "windows" {
        return;
    }
    let of_the_pod = spec.dig(&["securityContext", "appArmorProfile"]).value.clone();
    let Some(spec) = fill::present(pod, "spec") else { return };
    for list in super::defaults::CONTAINERS {
        fill::each(spec, list, |container| {
            let name = container["name"].as_str().unwrap_or_default();
            let Some((_, wanted)) = told.iter().find(|(of, _)| of == name) else { return };
            if *wanted != of_the_pod
                && let Some(context) = fill::object(container, "securityContext")
            {
                fill::absent(context, "appArmorProfile", wanted.clone());
            }
        });
    }
}

/// Profiles of a new pod that only annotations tell (`applyAppArmorVersionSkew`).
pub(super) fn warn_of_profiles(pod: &Value, warnings: &mut Vec<String>) {
    let pod = At::root(pod);
    let (spec, notes) = (pod.get("spec"), pod.dig(&["metadata", "annotations"]));
    let field = "appArmorProfile";
    if spec.dig(&["os", "name"]).text() == "windows" {
        return;
    }
    let of_the_pod = spec.dig(&["securityContext", field]);
    for container in systems::containers(&spec) {
        let note = notes.entry(&format!("{APP_ARMOR}{}", container.get("name").text()));
        let is_said_otherwise = profile(note.text()).is_some_and(|profile| {
            profile == *of_the_pod.value || container.dig(&["securityContext", field]).is_set()
        });
        if note.is_set() && !is_said_otherwise {
            warnings
                .push(format!("{}: deprecated since v1.30; use the \"{field}\" field instead", note.path));
        }
    }
}

fn profile(annotation: &str) -> Option<Value> {
    match annotation {
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        "unconfined" => Some(json!({"type": "Unconfined"})),
        _ => {
            let file = annotation.strip_prefix("localhost/").filter(|file| !file.trim().is_empty())?;
            Some(json!({"type": "Localhost", "localhostProfile": file}))
        }
    }
}

/// The profiles of AppArmor, and the containers that they are for (`ValidateAppArmorPodAnnotations`).
fn check_app_armor(annotations: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    let of_containers = || super::systems::containers(spec).map(|one| one.get("name").text());
    let known: OnceCell<BTreeSet<&str>> = OnceCell::new();
    for (key, at) in annotations.entries() {
        let Some(container) = key.strip_prefix(APP_ARMOR) else { continue };
        if !known.get_or_init(|| of_containers().collect()).contains(container) {
            errors.invalid_as(&at, container, "container not found");
        }
        let profile = at.text();
        if !matches!(profile, "" | "runtime/default" | "unconfined") && !profile.starts_with("localhost/") {
            errors.invalid(&at, format!("invalid AppArmor profile name: {profile:?}"));
        }
    }
}

/// Checks that annotations and fields tell the same profiles.
pub(super) fn check_fields(annotations: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    seccomp::check_fields(annotations, spec, errors);
    check_app_armor_fields(annotations, spec, errors);
}

/// Those of containers for AppArmor (`validateAppArmorAnnotationsAndFieldsMatchOnCreate`).
fn check_app_armor_fields(annotations: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    if spec.dig(&["os", "name"]).text() == "windows" {
        return;
    }
    let of_pod = spec.dig(&["securityContext", "appArmorProfile"]);
    for container in super::systems::containers(spec) {
        let note = annotations.entry(&format!("{APP_ARMOR}{}", container.get("name").text()));
        let at = container.dig(&["securityContext", "appArmorProfile"]);
        let profile = if at.is_set() { &at } else { &of_pod };
        if !note.is_set() || !profile.is_set() {
            continue;
        }
        check_match(note.text(), profile, &at, ("apparmor", &["runtime/default"]), errors);
    }
}

/// Checks that an annotation tells the profile that holds; `at` is where it is refused. Of the kind of profile: its name, and the
/// annotations that mean the one of the runtime.
pub(super) fn check_match(
    note: &str,
    profile: &At<'_>,
    at: &At<'_>,
    (what, of_runtime): (&str, &[&str]),
    errors: &mut Errors,
) {
    let of_node = note.strip_prefix("localhost/");
    let is_same_type = match profile.get("type").text() {
        "Unconfined" => note == "unconfined",
        "RuntimeDefault" => of_runtime.contains(&note),
        "Localhost" => of_node.is_some(),
        _ => return,
    };
    let file = profile.get("localhostProfile");
    if !is_same_type {
        errors.forbidden(&at.get("type"), format!("{what} type in annotation and field must match"));
    } else if of_node.is_some() && (!file.is_set() || of_node != Some(file.text())) {
        let detail = format!("{what} profile in annotation and field must match");
        errors.forbidden(&at.get("localhostProfile"), detail);
    }
}

/// A whole number without a plus sign or leading zeros.
fn is_cost(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let padded = digits.starts_with('0') && text != "0";
    !text.starts_with('+') && !padded && text.parse::<i32>().is_ok()
}

/// Checks a change of a pod's annotations (`ValidatePodSpecificAnnotationUpdates`).
pub(super) fn check_update(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    for (key, before) in old.entries() {
        let kept = new.value.get(key) == Some(before.value);
        if let Some(what) = fixed(key).filter(|_| !kept) {
            errors.forbidden(&new.entry(key), format!("may not remove or update {what}"));
        }
    }
    for (key, note) in new.entries() {
        if let Some(what) = fixed(key).filter(|_| old.value.get(key).is_none()) {
            errors.forbidden(&note, format!("may not add {what}"));
        }
    }
}

/// What an annotation that may not change is called.
fn fixed(key: &str) -> Option<&'static str> {
    match key {
        MIRROR => Some("mirror pod annotation"),
        key if key.starts_with(APP_ARMOR) => Some("AppArmor annotations"),
        _ => None,
    }
}
