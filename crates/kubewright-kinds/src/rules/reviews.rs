//! Reviews: requests that are answered and not stored (`pkg/apis/authorization/validation`,
//! `pkg/apis/authentication/validation`). They have no name, so only these checks are made of them.

use kubewright_meta::FieldError;
use kubewright_spec::Version;
use serde_json::{Value, json};

use super::at::At;
use super::errors::Errors;
use super::{Rules, fill, version};

/// The rules of access reviews. `about_others`: the review names a user.
pub(crate) const fn access(about_others: bool, local: bool) -> Rules {
    let validate: fn(&Value) -> Vec<FieldError> = match (about_others, local) {
        (_, true) => |review| {
            Errors::of(|errors| {
                let review = At::root(review);
                check(&review.get("spec"), true, errors);
                check_local(&review, errors);
            })
        },
        (true, false) => |review| Errors::of(|errors| check(&At::root(review).get("spec"), true, errors)),
        (false, false) => |review| Errors::of(|errors| check(&At::root(review).get("spec"), false, errors)),
    };
    Rules { default: show_status, validate, ..Rules::none() }
}

/// The rules of token reviews.
pub(crate) const fn tokens() -> Rules {
    Rules {
        default: |review| {
            fill::object(review, "spec");
            fill::object(review, "status");
        },
        validate: |review| {
            Errors::of(|errors| {
                errors.need(&At::root(review).dig(&["spec", "token"]));
            })
        },
        ..Rules::none()
    }
}

fn show_status(review: &mut Value) {
    fill::object(review, "spec");
    if let Some(status) = fill::object(review, "status") {
        fill::absent(status, "allowed", json!(false));
    }
}

const ONE: &str = "exactly one of nonResourceAttributes or resourceAttributes must be specified";

fn check(spec: &At<'_>, about_others: bool, errors: &mut Errors) {
    let (resource, other) = (spec.get("resourceAttributes"), spec.get("nonResourceAttributes"));
    match (resource.is_set(), other.is_set()) {
        (true, true) => {
            let of = |field: &str| other.get(field).text();
            let error = if version::since(Version::V1_37) {
                FieldError::invalid(&spec.path, Value::Null, ONE)
            } else {
                let words = "cannot be specified in combination with resourceAttributes";
                FieldError::invalid(&other.path, Value::Null, words)
            };
            errors.push(error.printed(format!("{{\"Path\":{:?},\"Verb\":{:?}}}", of("path"), of("verb"))));
        }
        (false, false) => {
            let at = if version::since(Version::V1_37) { spec } else { &resource };
            errors.invalid_as(at, Value::Null, ONE);
        }
        _ => {}
    }
    if about_others && spec.get("user").is_empty() && spec.get("groups").is_empty() {
        errors.invalid_text(&spec.get("user"), "at least one of user or group must be specified");
    }
}

fn check_local(review: &At<'_>, errors: &mut Errors) {
    let namespace = review.dig(&["metadata", "namespace"]).text();
    let asked = review.dig(&["spec", "resourceAttributes", "namespace"]);
    if review.dig(&["spec", "resourceAttributes"]).is_set() && asked.text() != namespace {
        errors.invalid_text(&asked, "must match metadata.namespace");
    }
    if review.dig(&["spec", "nonResourceAttributes"]).is_set() {
        let place = review.dig(&["spec", "nonResourceAttributes"]);
        errors.invalid(&place, "disallowed on this kind of request");
    }
}
