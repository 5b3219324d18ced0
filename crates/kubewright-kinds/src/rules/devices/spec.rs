//! Claims of devices, and templates of claims.

use kubewright_meta::FieldError;

use super::super::at::At;
use super::super::errors::{Errors, IMMUTABLE};
use super::super::pods::volumes::check_template_metadata;
use super::super::{Again, Rules, fill};
use super::{requests, shapes, status};

/// The rules of claims.
pub(crate) const fn claims() -> Rules {
    Rules {
        default: |claim| {
            if let Some(devices) = fill::reach(claim, &["spec", "devices"]) {
                requests::default(devices);
            }
        },
        prepare_create: |claim| {
            fill::set(claim, "status", serde_json::json!({}));
            if let Some(devices) = fill::reach(claim, &["spec", "devices"]) {
                requests::drop_disabled(devices);
            }
        },
        prepare_update: |claim, _| {
            if let Some(devices) = fill::reach(claim, &["spec", "devices"]) {
                requests::drop_disabled(devices);
            }
        },
        prepare_status: status::prepare,
        again: Again::Metadata,
        validate: |claim| {
            Errors::of(|errors| requests::check(&At::root(claim).dig(&["spec", "devices"]), errors))
        },
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
                if !new.same(&old) {
                    let error = FieldError::invalid(&new.path, new.value.clone(), IMMUTABLE);
                    errors.push(error.printed(shapes::claim(new.value)));
                }
            })
        },
        validate_status: |new, old| {
            Errors::of(|errors| status::check(&At::root(new), &At::root(old), errors))
        },
        ..Rules::none()
    }
}

/// The rules of templates.
pub(crate) const fn templates() -> Rules {
    Rules {
        default: |template| {
            if let Some(devices) = fill::reach(template, &["spec", "spec", "devices"]) {
                requests::default(devices);
            }
        },
        prepare_create: |template| {
            if let Some(devices) = fill::reach(template, &["spec", "spec", "devices"]) {
                requests::drop_disabled(devices);
            }
        },
        prepare_update: |template, _| {
            if let Some(devices) = fill::reach(template, &["spec", "spec", "devices"]) {
                requests::drop_disabled(devices);
            }
        },
        again: Again::Object,
        validate: |template| {
            Errors::of(|errors| {
                let spec = At::root(template).get("spec");
                check_template_metadata(&spec.get("metadata"), errors);
                requests::check(&spec.dig(&["spec", "devices"]), errors);
            })
        },
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
                if !new.same(&old) {
                    let error = FieldError::invalid(&new.path, new.value.clone(), IMMUTABLE);
                    errors.push(error.printed(shapes::template(new.value)));
                }
            })
        },
        ..Rules::none()
    }
}
