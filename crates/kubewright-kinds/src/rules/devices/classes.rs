//! Classes of devices.

use super::super::at::At;
use super::super::errors::Errors;
use kubewright_spec::Version;
use serde_json::Value;

use super::super::version::{has_feature, since};
use super::super::{Again, Generation, Rules, fill, resources};
use super::{check_list, requests};

pub(crate) const fn rules() -> Rules {
    Rules {
        prepare_create: |class| drop_disabled(class, None),
        prepare_update: |class, old| drop_disabled(class, Some(old)),
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

/// Drops what a feature has that is off, unless it was there before.
fn drop_disabled(class: &mut Value, old: Option<&Value>) {
    let had = old.is_some_and(|old| At::root(old).dig(&["spec", "extendedResourceName"]).is_set());
    if !has_feature("DRAExtendedResource")
        && !had
        && let Some(spec) = fill::present(class, "spec")
    {
        fill::remove(spec, "extendedResourceName");
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
        let why = match extended.text() {
            name if since(Version::V1_37) && !name.contains('/') => {
                "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
            }
            name if since(Version::V1_37) && name.contains("kubernetes.io/") => {
                "must not have \"kubernetes.io/\" domain"
            }
            _ => "must be a valid extended resource name",
        };
        errors.invalid(&extended, why);
    }
}
