//! Namespaces.

use kubewright_meta::FieldError;
use serde_json::{Value, json};

use super::at::At;
use super::errors::Errors;
use super::{Again, NameRule, Rules, fill, text};

/// The label that names the namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The finalizer that keeps a namespace until it is empty.
const FINALIZER: &str = "kubernetes";

pub(crate) const fn rules() -> Rules {
    Rules {
        default,
        prepare_create: |namespace| {
            fill::set(namespace, "status", json!({"phase": "Active"}));
            keep_until_empty(namespace);
            // A generated name is known by now.
            default(namespace);
        },
        prepare_update: |new, old| {
            if let Some(spec) = fill::object(new, "spec") {
                let before = old.get("spec").unwrap_or(&Value::Null);
                fill::keep(spec, before, "finalizers");
            }
        },
        name: NameRule::Label,
        again: Again::Object,
        validate: |namespace| Errors::of(|errors| check(&At::root(namespace), errors)),
        validate_status,
        ..Rules::none()
    }
}

fn default(namespace: &mut Value) {
    fill::object(namespace, "spec");
    if let Some(status) = fill::object(namespace, "status") {
        fill::blank(status, "phase", "Active");
    }
    let name = namespace["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return;
    }
    if let Some(labels) =
        fill::object(namespace, "metadata").and_then(|metadata| fill::map(metadata, "labels"))
    {
        labels.insert(NAME_LABEL.to_owned(), name.into());
    }
}

fn keep_until_empty(namespace: &mut Value) {
    let Some(spec) = fill::object(namespace, "spec") else { return };
    let mut finalizers = spec.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.into());
    }
    fill::set(spec, "finalizers", finalizers);
}

fn check(namespace: &At<'_>, errors: &mut Errors) {
    check_finalizers(&namespace.dig(&["spec", "finalizers"]), false, errors);
}

fn check_finalizers(list: &At<'_>, indexed: bool, errors: &mut Errors) {
    for finalizer in list.items() {
        let at = if indexed { finalizer } else { At { path: list.path.clone(), ..finalizer } };
        errors.text(&at, text::label_key);
        if !at.text().contains('/') && !matches!(at.text(), "kubernetes" | "orphan" | "foregroundDeletion") {
            errors.invalid_text(&at, "name is neither a standard finalizer name nor is it fully qualified");
        }
    }
}

/// What is wrong with a write to `namespaces/finalize` (`ValidateNamespaceFinalizeUpdate`).
#[must_use]
pub fn validate_finalize(namespace: &Value) -> Vec<FieldError> {
    Errors::of(|errors| check_finalizers(&At::root(namespace).dig(&["spec", "finalizers"]), true, errors))
}

fn validate_status(new: &Value, _old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let new = At::root(new);
        let phase = At { path: "status.Phase".to_owned(), ..new.dig(&["status", "phase"]) };
        let deleted = new.dig(&["metadata", "deletionTimestamp"]).is_set();
        match (deleted, phase.text()) {
            (false, "Active") | (true, "Terminating") => {}
            (false, _) => errors.invalid_text(&phase, "may only be 'Active' if `deletionTimestamp` is empty"),
            (true, _) => {
                errors.invalid_text(&phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
            }
        }
    })
}
