//! Profiles of seccomp in annotations, as clients from before v1.19 write them: they mean nothing any more, and are still checked.

use super::super::at::At;
use super::super::errors::Errors;
use super::paths::check_descending;
use super::systems;

const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const ON_NODE: &str = "localhost/";

/// Checks the annotations (`ValidateSeccompPodAnnotations`).
pub(super) fn check(annotations: &At<'_>, errors: &mut Errors) {
    let of_containers =
        annotations.entries().filter(|(key, _)| key.starts_with(OF_CONTAINER)).map(|(key, _)| key);
    let of_pod = annotations.value.get(OF_POD).map(|_| OF_POD);
    for key in of_pod.into_iter().chain(of_containers) {
        let note = annotations.get(key);
        match note.text() {
            "runtime/default" | "docker/default" | "unconfined" => {}
            profile => match profile.strip_prefix(ON_NODE) {
                Some(file) => check_descending(&At { value: &file.into(), path: note.path.clone() }, errors),
                None => errors.invalid_text(&note, "must be a valid seccomp profile"),
            },
        }
    }
}

/// Checks that annotations and fields tell the same profiles (`validateSeccompAnnotationsAndFields`).
pub(super) fn check_fields(annotations: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    let mut check = |key: &str, profile: &At<'_>| {
        let note = annotations.entry(key);
        if note.is_set() && profile.is_set() {
            check_match(note.text(), profile, errors);
        }
    };
    let place = ["securityContext", "seccompProfile"];
    check(OF_POD, &spec.dig(&place));
    for container in systems::containers(spec) {
        check(&format!("{OF_CONTAINER}{}", container.get("name").text()), &container.dig(&place));
    }
}

fn check_match(note: &str, profile: &At<'_>, errors: &mut Errors) {
    let file = note.strip_prefix(ON_NODE);
    let is_same_type = match profile.get("type").text() {
        "Unconfined" => note == "unconfined",
        "RuntimeDefault" => matches!(note, "runtime/default" | "docker/default"),
        "Localhost" => file.is_some(),
        _ => return,
    };
    let of_profile = profile.get("localhostProfile");
    if !is_same_type {
        errors.forbidden(&profile.get("type"), "seccomp type in annotation and field must match");
    } else if file.is_some() && (!of_profile.is_set() || file != Some(of_profile.text())) {
        errors.forbidden(&of_profile, "seccomp profile in annotation and field must match");
    }
}
