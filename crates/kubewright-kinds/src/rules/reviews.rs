//! Reviews: requests that are answered and not stored (`pkg/apis/authentication/validation`).
//! They have no name, so only these checks are made of them.

use serde_json::{Value, json};

use super::at::At;
use super::errors::Errors;
use super::{Rules, fill};

/// The rules of access reviews. What is wrong with one is found where it is answered (`kubewright_identity::authz::review`).
pub(crate) const fn access() -> Rules {
    Rules { default: show_status, ..Rules::none() }
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
