//! Storage classes and volume attributes classes.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{Again, Rules, fill, text};

/// How many parameters there may be, and how large all of them together.
const PARAMETERS: usize = 512;
const PARAMETERS_SIZE: usize = 256 * 1024;

pub(crate) const fn rules() -> Rules {
    Rules {
        keeps_empty_maps: true,
        default: |class| {
            fill::absent(class, "reclaimPolicy", "Delete");
            fill::absent(class, "volumeBindingMode", "Immediate");
        },
        again: Again::Object,
        validate: |class| Errors::of(|errors| check(&At::root(class), errors)),
        validate_update: |new, old| {
            immutable(new, old, &["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"])
        },
        ..Rules::none()
    }
}

/// The rules of volume attributes classes.
pub(crate) const fn attributes_classes() -> Rules {
    Rules {
        validate: |class| Errors::of(|errors| check_attributes_class(&At::root(class), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                for field in ["driverName", "parameters"] {
                    if new.get(field) != old.get(field) {
                        let path = At::root(new).get(field).path;
                        errors
                            .push(FieldError::forbidden(path, format!("updates to {field} are forbidden.")));
                    }
                }
                check_attributes_class(&At::root(new), errors);
            })
        },
        again: Again::Metadata,
        ..Rules::none()
    }
}

fn check_attributes_class(class: &At<'_>, errors: &mut Errors) {
    check_provisioner(&class.get("driverName"), errors);
    check_parameters(&class.get("parameters"), errors);
    if class.get("parameters").is_empty() {
        errors.required(&class.get("parameters"), "must contain at least one key/value pair");
    }
}

fn immutable(new: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    Errors::of(|errors| {
        for field in fields {
            let (now, then) = (At::root(new).get(field), At::root(old).get(field));
            // No parameters are the same as none.
            if !now.same_or_empty(&then) {
                errors.immutable(&now, &then);
            }
        }
    })
}

fn check(class: &At<'_>, errors: &mut Errors) {
    check_provisioner(&class.get("provisioner"), errors);
    check_parameters(&class.get("parameters"), errors);
    let policy = class.get("reclaimPolicy");
    if !policy.is_empty() {
        errors.one_of(&policy, &["Delete", "Retain"]);
    }
    let mode = class.get("volumeBindingMode");
    if mode.is_set() {
        errors.one_of(&mode, &["Immediate", "WaitForFirstConsumer"]);
    } else {
        errors.required(&mode, "");
    }
    check_topologies(&class.get("allowedTopologies"), errors);
}

/// Who makes the volumes (`validateProvisioner`).
fn check_provisioner(provisioner: &At<'_>, errors: &mut Errors) {
    if errors.need(provisioner) {
        let lower = provisioner.text().to_lowercase();
        for message in text::label_key(&lower) {
            errors.invalid_as(provisioner, lower.as_str(), message);
        }
    }
}

fn check_parameters(parameters: &At<'_>, errors: &mut Errors) {
    if parameters.len() > PARAMETERS {
        errors.push(FieldError::too_long(&parameters.path, PARAMETERS));
        return;
    }
    let mut size = 0;
    for (key, value) in parameters.entries() {
        if key.is_empty() {
            errors.invalid_as(parameters, key, "field can not be empty.");
        }
        size += key.len() + value.text().len();
    }
    if size > PARAMETERS_SIZE {
        errors.push(FieldError::too_long(&parameters.path, PARAMETERS_SIZE));
    }
}

/// What a term asks for: the values of each label.
type Wanted<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Terms, none of which asks for the same as another. Kubernetes compares each with as many empty ones as there are terms, too.
fn check_topologies(terms: &At<'_>, errors: &mut Errors) {
    let mut known = vec![Wanted::new(); terms.len()];
    for term in terms.items() {
        let asked = check_topology(&term, errors);
        let path = term.get("matchLabelExpressions").path;
        for _ in known.iter().filter(|one| **one == asked) {
            errors.push(FieldError::duplicate(&path, ""));
        }
        known.push(asked);
    }
}

fn check_topology<'a>(term: &At<'a>, errors: &mut Errors) -> Wanted<'a> {
    let mut asked = Wanted::new();
    for expression in term.get("matchLabelExpressions").items() {
        let (key, values) = (expression.get("key"), expression.get("values"));
        errors.need(&values);
        let mut seen = BTreeSet::new();
        for value in values.items() {
            if !seen.insert(value.text()) {
                errors.duplicate(&value);
            }
        }
        errors.text(&key, text::label_key);
        if asked.insert(key.text(), seen).is_some() {
            errors.duplicate(&key);
        }
    }
    asked
}
