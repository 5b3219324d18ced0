//! Paths inside volumes and on nodes.

use super::super::at::At;
use super::super::errors::Errors;

/// A path that does not climb (`validatePathNoBacksteps`).
pub(super) fn check_no_backsteps(path: &At<'_>, errors: &mut Errors) {
    if climbs(path.text()) {
        errors.invalid_text(path, "must not contain '..'");
    }
}

/// Whether a path has a `..` in it.
pub(super) fn climbs(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// A relative path that does not climb (`validateLocalDescendingPath`).
pub(super) fn check_descending(path: &At<'_>, errors: &mut Errors) {
    if path.text().starts_with('/') {
        errors.invalid_text(path, "must be a relative path");
    }
    check_no_backsteps(path, errors);
}

/// A relative path that does not climb and starts with no name that the kubelet keeps (`ValidateLocalNonReservedPath`).
pub(super) fn check_not_reserved(path: &At<'_>, errors: &mut Errors) {
    check_descending(path, errors);
    if path.text().starts_with("..") && !path.text().starts_with("../") {
        errors.invalid_text(path, "must not start with '..'");
    }
}

/// Permissions of a file.
pub(super) fn check_mode(mode: &At<'_>, errors: &mut Errors) {
    if mode.number().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.invalid(mode, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}
