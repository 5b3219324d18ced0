//! Pod templates, as workloads hold them (`ValidatePodTemplateSpec`).

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{metadata, selector};
use super::{annotations, spec};

/// Checks a template.
pub fn check(template: &At<'_>, errors: &mut Errors) {
    check_metadata(template, errors);
    spec::check(&template.get("spec"), "", false, errors);
    annotations::check_fields(&template.dig(&["metadata", "annotations"]), &template.get("spec"), errors);
    let ephemeral = template.dig(&["spec", "ephemeralContainers"]);
    if !ephemeral.is_empty() {
        errors.forbidden(&ephemeral, "ephemeral containers not allowed in pod template");
    }
}

/// Checks the labels and annotations of a template.
pub(crate) fn check_metadata(template: &At<'_>, errors: &mut Errors) {
    let (labels, notes) = (template.get("labels"), template.get("annotations"));
    let meta = template.get("metadata");
    // Kubernetes leaves `metadata` out of these paths.
    selector::check_labels(&At { path: labels.path, ..meta.get("labels") }, errors);
    let notes = At { path: notes.path, ..meta.get("annotations") };
    metadata::check_annotations(&notes, errors);
    annotations::check(&notes, &template.get("spec"), errors);
}

/// Checks that the pods of a template are always restarted and have no end. `what` names the controller.
pub(crate) fn check_lasting(template: &At<'_>, what: &str, errors: &mut Errors) {
    let policy = template.dig(&["spec", "restartPolicy"]);
    if policy.text() != "Always" {
        errors.not_supported(&policy, &["Always"]);
    }
    let deadline = template.dig(&["spec", "activeDeadlineSeconds"]);
    if deadline.is_set() {
        errors.forbidden(&deadline, format!("activeDeadlineSeconds in {what} is not Supported"));
    }
}

/// Checks that the labels of a template are those that a selector looks for. An empty selector is left to the kind's
/// own words, and one that cannot be used to those who check it.
pub(crate) fn check_selected(template: &At<'_>, wanted: &At<'_>, errors: &mut Errors) {
    let labels = template.dig(&["metadata", "labels"]);
    if selector::selects(wanted, labels.value) == Some(false) {
        errors.invalid(&labels, "`selector` does not match template `labels`");
    }
}
