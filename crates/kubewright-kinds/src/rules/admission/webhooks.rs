//! Configurations of admission webhooks.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use serde_json::{Value, json};

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{Again, Finalizers, Generation, Rules, fill, text};
use super::{matching, reserved, webhook_path, webhook_url};

const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The rules of validating configurations.
pub(crate) const fn validating() -> Rules {
    Rules {
        default: |object| fill::each(object, "webhooks", default),
        generation: Generation::AsGiven,
        keeps_empty_maps: true,
        finalizers: Finalizers::Syntax,
        again: Again::Metadata,
        change_again: false,
        validate: |object| reserved::with_name(object, |object| check(object, false, true)),
        warn: reserved::of_webhooks,
        validate_update: |new, old| check(new, false, conditions_changed(new, old)),
        ..Rules::none()
    }
}

/// The rules of mutating configurations.
pub(crate) const fn mutating() -> Rules {
    Rules {
        default: |object| {
            fill::each(object, "webhooks", |hook| {
                default(hook);
                fill::absent(hook, "reinvocationPolicy", "Never");
            });
        },
        generation: Generation::AsGiven,
        keeps_empty_maps: true,
        finalizers: Finalizers::Syntax,
        again: Again::Metadata,
        change_again: false,
        validate: |object| reserved::with_name(object, |object| check(object, true, true)),
        warn: reserved::of_webhooks,
        validate_update: |new, old| check(new, true, conditions_changed(new, old)),
        ..Rules::none()
    }
}

fn default(hook: &mut Value) {
    fill::absent(hook, "failurePolicy", "Fail");
    matching::default(hook);
    matching::default_rules(hook, "rules");
    fill::absent(hook, "timeoutSeconds", 10);
    if let Some(client) = fill::present(hook, "clientConfig") {
        // kube-apiserver keeps certificates without contents, and so they are the same when they are sent again. Nobody reads them.
        if client["caBundle"] == "" {
            fill::remove(client, "caBundle");
        }
        if let Some(service) = fill::present(client, "service") {
            fill::absent(service, "port", 443);
        }
    }
}

/// Conditions that do not change are not checked again.
fn conditions_changed(new: &Value, old: &Value) -> bool {
    let conditions = |object: &Value| -> Vec<Value> {
        let hooks = object["webhooks"].as_array().into_iter().flatten();
        hooks.map(|hook| hook.get("matchConditions").cloned().unwrap_or_default()).collect()
    };
    conditions(new) != conditions(old)
}

fn check(object: &Value, mutating: bool, with_conditions: bool) -> Vec<FieldError> {
    Errors::of(|errors| {
        let hooks = At::root(object).get("webhooks");
        for hook in hooks.items() {
            check_hook(&hook, mutating, errors);
            if with_conditions {
                matching::check_conditions(&hook.get("matchConditions"), false, errors);
            }
            check_versions(&hook.get("admissionReviewVersions"), errors);
        }
        errors.unique(&hooks, "name");
    })
}

fn check_hook(hook: &At<'_>, mutating: bool, errors: &mut Errors) {
    check_name(&hook.get("name"), errors);
    for rule in hook.get("rules").items() {
        matching::check_rule(&rule, errors);
    }
    errors.maybe_one_of(&hook.get("failurePolicy"), &["Fail", "Ignore"]);
    errors.maybe_one_of(&hook.get("matchPolicy"), &matching::POLICIES);
    let effects = hook.get("sideEffects");
    if effects.is_set() {
        errors.one_of(&effects, &["None", "NoneOnDryRun"]);
    } else {
        errors.required(&effects, "must specify one of None, NoneOnDryRun");
    }
    let timeout = hook.get("timeoutSeconds");
    if timeout.number().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        errors.invalid(&timeout, "the timeout value must be between 1 and 30 seconds");
    }
    matching::check_selectors(hook, errors);
    if mutating {
        errors.maybe_one_of(&hook.get("reinvocationPolicy"), &["IfNeeded", "Never"]);
    }
    let client = hook.get("clientConfig");
    let (url, service) = (client.get("url"), client.get("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => errors.extend(webhook_url::errors(&url.path, url.text())),
        (false, true) => check_service(&service, errors),
        _ => errors.required(&client, "exactly one of url or service is required"),
    }
}

fn check_name(name: &At<'_>, errors: &mut Errors) {
    if !errors.need(name) {
        return;
    }
    let wrong = text::subdomain(name.text());
    if !wrong.is_empty() {
        errors.invalid(name, wrong.join(","));
    } else if name.text().split('.').count() < 3 {
        errors.invalid(name, "should be a domain with at least three segments separated by dots");
    }
}

fn check_versions(versions: &At<'_>, errors: &mut Errors) {
    if versions.is_empty() {
        errors.required(versions, "must specify one of v1, v1beta1");
        return;
    }
    let mut seen = BTreeSet::new();
    for version in versions.items() {
        if !seen.insert(version.text()) {
            errors.invalid(&version, "duplicate version");
            continue;
        }
        errors.text(&version, text::label_1035);
    }
    if !seen.iter().any(|version| VERSIONS.contains(version)) {
        errors.invalid(versions, "must include at least one of v1, v1beta1");
    }
}

fn check_service(service: &At<'_>, errors: &mut Errors) {
    // Kubernetes takes one for the other.
    for (field, told) in [("namespace", "name"), ("name", "namespace")] {
        errors.need(&At { path: service.get(told).path, ..service.get(field) });
    }
    let port = service.get("port");
    if !port.number().is_some_and(|port| (1..=65535).contains(&port)) {
        let number = port.number().map_or(json!(0), |number| json!(number));
        errors.invalid_as(&port, number, "port is not valid: must be between 1 and 65535, inclusive");
    }
    let path = service.get("path");
    errors.extend(webhook_path::errors(&path.path, path.text()));
}
