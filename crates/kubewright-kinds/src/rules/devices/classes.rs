//! Classes of devices.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{Again, Generation, Rules, resources};
use super::{check_list, requests};

pub(crate) const fn rules() -> Rules {
    Rules {
        generation: Generation::Content,
        again: Again::Metadata,
        validate: |class| Errors::of(|errors| check(&At::root(class).get("spec"), None, errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                check(&At::root(new).get("spec"), Some(&At::root(old).get("spec")), errors);
            })
        },
        ..Rules::none()
    }
}

/// What is as it was stored was good when it came.
fn check(spec: &At<'_>, old: Option<&At<'_>>, errors: &mut Errors) {
    let is_stored = |field: &str| old.is_some_and(|old| old.get(field).same(&spec.get(field)));
    if !is_stored("selectors") {
        requests::check_selectors(&spec.get("selectors"), errors);
    }
    let is_new = !is_stored("config");
    check_list(&spec.get("config"), requests::CONFIGS, errors, |config, errors| {
        requests::check_config(config, is_new, errors);
    });
    let extended = spec.get("extendedResourceName");
    if extended.is_set() && !resources::is_extended(extended.text()) {
        errors.invalid(&extended, "must be a valid extended resource name");
    }
}
