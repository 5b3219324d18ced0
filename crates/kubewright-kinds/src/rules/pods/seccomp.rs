//! Profiles of seccomp in annotations, as clients from before v1.19 write them: they mean nothing any more, and are still checked.

use super::super::at::At;
use super::super::errors::Errors;
use super::annotations::check_match;
use super::paths::check_descending;
use super::systems;

const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const ON_NODE: &str = "localhost/";
const OF_RUNTIME: [&str; 2] = ["runtime/default", "docker/default"];

/// Checks the annotations (`ValidateSeccompPodAnnotations`).
pub(super) fn check(annotations: &At<'_>, errors: &mut Errors) {
    let of_containers =
        annotations.entries().filter(|(key, _)| key.starts_with(OF_CONTAINER)).map(|(key, _)| key);
    let of_pod = annotations.value.get(OF_POD).map(|_| OF_POD);
    for key in of_pod.into_iter().chain(of_containers) {
        let note = annotations.get(key);
        match note.text() {
            "unconfined" => {}
            profile if OF_RUNTIME.contains(&profile) => {}
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
            check_match(note.text(), profile, profile, ("seccomp", &OF_RUNTIME), errors);
        }
    };
    let place = ["securityContext", "seccompProfile"];
    check(OF_POD, &spec.dig(&place));
    for container in systems::containers(spec) {
        check(&format!("{OF_CONTAINER}{}", container.get("name").text()), &container.dig(&place));
    }
}
