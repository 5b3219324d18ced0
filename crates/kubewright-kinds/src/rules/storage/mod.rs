//! Storage: claims, volumes and classes (`pkg/apis/core/validation`, `pkg/apis/storage/validation`).

pub(crate) mod claims;
mod classes;
mod drivers;
mod volumes;

pub(crate) use classes::{attributes_classes, rules as classes};
pub(crate) use drivers::{attachments, capacities, drivers, nodes};
pub(crate) use volumes::rules as volumes;

use super::at::At;
use super::errors::Errors;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// The access modes of a claim or volume: known ones, and the exclusive one alone.
fn check_access_modes(modes: &At<'_>, missing: &str, errors: &mut Errors) {
    if modes.is_empty() {
        errors.required(modes, missing);
    }
    let (mut exclusive, mut shared) = (false, false);
    for mode in modes.items().map(|mode| mode.text()) {
        if !ACCESS_MODES.contains(&mode) {
            errors.push(kubewright_meta::FieldError::not_supported(&modes.path, mode, ACCESS_MODES));
        } else if mode == "ReadWriteOncePod" {
            exclusive = true;
        } else {
            shared = true;
        }
    }
    if exclusive && shared {
        errors.forbidden(modes, "may not use ReadWriteOncePod with other access modes");
    }
}
