//! What the status of a pod says of its containers: as whom they run, and how what was allocated to them is
//! (`validateContainerStatusUsers`, `validateContainerStatusAllocatedResourcesStatus`).

use std::collections::BTreeSet;

use kubewright_meta::FieldError;

use super::super::at::At;
use super::super::errors::Errors;

/// The lists of statuses, each with the list of its containers. Ephemeral containers are allocated nothing.
const LISTS: [(&str, Option<&str>); 3] = [
    ("containerStatuses", Some("containers")),
    ("initContainerStatuses", Some("initContainers")),
    ("ephemeralContainerStatuses", None),
];
const HEALTHS: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
const LONGEST_MESSAGE: usize = 1024;

/// Checks all of them: those of users first.
pub(super) fn check(pod: &At<'_>, errors: &mut Errors) {
    let (spec, status) = (pod.get("spec"), pod.get("status"));
    for (list, _) in LISTS {
        for one in status.get(list).items() {
            check_user(&one.dig(&["user", "linux"]), spec.dig(&["os", "name"]).text(), errors);
        }
    }
    for (list, containers) in LISTS {
        for one in status.get(list).items() {
            let allocated = one.get("allocatedResourcesStatus");
            match containers {
                Some(containers) => check_allocated(&one, &allocated, &spec.get(containers), errors),
                None if allocated.is_empty() => {}
                None => errors.forbidden(&allocated, "must not be specified in container status"),
            }
        }
    }
}

fn check_user(user: &At<'_>, os: &str, errors: &mut Errors) {
    match os {
        _ if !user.is_set() => {}
        "windows" => errors.forbidden(user, "cannot be set for a windows pod"),
        "" | "linux" => {
            let ids = [user.get("uid"), user.get("gid")];
            for id in ids.into_iter().chain(user.get("supplementalGroups").items()) {
                errors.within(&id, 0, i64::from(i32::MAX));
            }
        }
        _ => {}
    }
}

fn check_allocated(status: &At<'_>, allocated: &At<'_>, containers: &At<'_>, errors: &mut Errors) {
    let name = status.get("name");
    let container = containers.items().find(|container| container.get("name").text() == name.text());
    for resource in allocated.items() {
        if let Some(container) = &container {
            check_name(&resource.get("name"), &container.get("resources"), errors);
        }
        let mut seen = BTreeSet::new();
        for part in resource.get("resources").items() {
            errors.one_of(&part.get("health"), &HEALTHS);
            let message = part.get("message");
            if message.is_set() && message.is_empty() {
                errors.required(&message, "must be non-empty if specified");
            } else if message.text().len() > LONGEST_MESSAGE {
                errors.push(FieldError::too_long(&message.path, LONGEST_MESSAGE));
            }
            let id = part.get("resourceID");
            if !seen.insert(id.text().to_owned()) {
                errors.push(FieldError::duplicate(&id.path, id.text()));
            }
        }
    }
}

/// What is allocated is a claim of the container, or something that it asks for.
fn check_name(name: &At<'_>, resources: &At<'_>, errors: &mut Errors) {
    let is_claim = |claim: At<'_>| {
        let (of, request) = (claim.get("name"), claim.get("request"));
        let slash = if request.is_empty() { "" } else { "/" };
        name.text() == format!("claim:{}{slash}{}", of.text(), request.text())
    };
    let (found, why) = if name.text().starts_with("claim:") {
        let why = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
        (resources.get("claims").items().any(is_claim), why)
    } else {
        let asked = resources.get("requests").get(name.text()).is_set();
        (asked, "must match one of the container's resource requests")
    };
    if !found {
        errors.invalid_text(name, why);
    }
}
