//! What a claim asks for: requests, selectors, constraints and configurations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use kubewright_cel::Environment;
use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::version::has_feature;
use super::super::{fill, text};
use super::{by_name, check_list, check_set, itself, names, taints};

/// How many there may be of each.
const REQUESTS: usize = 32;
const CONSTRAINTS: usize = 32;
pub(super) const CONFIGS: usize = 32;
const SELECTORS: usize = 32;
const ALTERNATIVES: usize = 8;
/// Bytes of an expression, and what it may cost.
const EXPRESSION: usize = 10 * 1024;
const COST: u64 = 1_000_000;
/// Bytes of parameters.
const PARAMETERS: usize = 10 * 1024;
const NO_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// The requests of a claim, each with the alternatives that it names.
pub(super) struct Names<'a>(BTreeMap<&'a str, BTreeSet<&'a str>>);

impl<'a> Names<'a> {
    pub(super) fn of(devices: &At<'a>) -> Self {
        let of_request = |request: At<'a>| {
            let below = request.get("firstAvailable").items().map(|one| one.get("name").text()).collect();
            (request.get("name").text(), below)
        };
        Self(devices.get("requests").items().map(of_request).collect())
    }

    fn has(&self, name: &str) -> bool {
        let (request, below) = match name.split_once('/') {
            Some((request, below)) => (request, Some(below)),
            None => (name, None),
        };
        let Some(known) = self.0.get(request) else { return false };
        below.is_none_or(|below| known.contains(below))
    }
}

/// Fills in how many devices are asked for (`SetDefaults_ExactDeviceRequest`, `SetDefaults_DeviceSubRequest`).
pub(super) fn default(devices: &mut Value) {
    fill::each(devices, "requests", |request| {
        if let Some(exactly) = fill::present(request, "exactly") {
            default_request(exactly);
        }
        fill::each(request, "firstAvailable", default_request);
    });
}

fn default_request(request: &mut Value) {
    fill::blank(request, "allocationMode", "ExactCount");
    if request["allocationMode"] == "ExactCount" {
        fill::zero(request, "count", 1);
    }
}

/// Drops what features have that are off (`DropDisabledFields` in `pkg/api/resourceclaimspec`). A spec never changes, so that
/// nothing has to be kept for having been there.
pub(super) fn drop_disabled(devices: &mut Value) {
    let is_off = |gate: &str| !has_feature(gate);
    let fields: Vec<&str> = [
        (is_off("DRADerivedAttributes"), "derivedAttributes"),
        (is_off("DRADeviceTaints"), "tolerations"),
        (is_off("DRAConsumableCapacity"), "capacity"),
    ]
    .into_iter()
    .filter_map(|(off, field)| off.then_some(field))
    .collect();
    let drop = |request: &mut Value| fields.iter().for_each(|field| fill::remove(request, field));
    fill::each(devices, "requests", |request| {
        if let Some(exactly) = fill::present(request, "exactly") {
            drop(exactly);
        }
        fill::each(request, "firstAvailable", drop);
    });
    if is_off("DRAConsumableCapacity") {
        fill::each(devices, "constraints", |constraint| fill::remove(constraint, "distinctAttribute"));
    }
}

pub(super) fn check(devices: &At<'_>, errors: &mut Errors) {
    let known = Names::of(devices);
    check_set(&devices.get("requests"), REQUESTS, errors, check_request, by_name);
    check_list(&devices.get("constraints"), CONSTRAINTS, errors, |constraint, errors| {
        check_constraint(constraint, &known, errors);
    });
    check_list(&devices.get("config"), CONFIGS, errors, |config, errors| {
        check_references(&config.get("requests"), &known, errors);
        check_config(config, true, errors);
    });
}

fn check_request(request: &At<'_>, errors: &mut Errors) {
    names::check_label(&request.get("name"), errors);
    let (exactly, first) = (request.get("exactly"), request.get("firstAvailable"));
    match (exactly.is_set(), !first.is_empty()) {
        (false, false) => {
            errors.required(request, "exactly one of `exactly` or `firstAvailable` is required");
        }
        (true, true) => errors.invalid_as(
            request,
            Value::Null,
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        ),
        (false, true) => check_set(
            &first,
            ALTERNATIVES,
            errors,
            |one, errors| {
                names::check_label(&one.get("name"), errors);
                check_wanted(one, errors);
            },
            by_name,
        ),
        (true, false) => check_wanted(&exactly, errors),
    }
}

/// What a request and an alternative of one have in common.
fn check_wanted(request: &At<'_>, errors: &mut Errors) {
    names::check_class(&request.get("deviceClassName"), errors);
    check_selectors(&request.get("selectors"), errors);
    let (mode, count) = (request.get("allocationMode"), request.get("count"));
    let number = count.number().unwrap_or_default();
    match mode.text() {
        "All" if number != 0 => {
            errors.invalid_as(&count, number, "must not be specified when allocationMode is 'All'");
        }
        "ExactCount" if number <= 0 => errors.invalid_as(&count, number, "must be greater than zero"),
        "All" | "ExactCount" => {}
        _ => errors.not_supported(&mode, &["All", "ExactCount"]),
    }
    for toleration in request.get("tolerations").items() {
        taints::check_toleration(&toleration, errors);
    }
}

/// Selectors are expressions, which have to compile.
pub(super) fn check_selectors(selectors: &At<'_>, errors: &mut Errors) {
    check_list(selectors, SELECTORS, errors, |selector, errors| {
        let cel = selector.get("cel");
        if cel.is_set() {
            check_expression(&cel.get("expression"), errors);
        } else {
            errors.required(&cel, "");
        }
    });
}

fn check_expression(expression: &At<'_>, errors: &mut Errors) {
    static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| Environment::of_devices(true));
    static WITHOUT_SHARES: LazyLock<Environment> = LazyLock::new(|| Environment::of_devices(false));
    if expression.text().len() > EXPRESSION {
        errors.push(FieldError::too_long(&expression.path, EXPRESSION));
        return;
    }
    let environment = if has_feature("DRAConsumableCapacity") { &ENVIRONMENT } else { &WITHOUT_SHARES };
    match environment.selector(expression.text()) {
        Err(why) => errors.invalid_text(expression, why),
        Ok(program) if program.estimate().max > COST => {
            errors.forbidden(expression, "too complex, exceeds cost limit");
        }
        Ok(_) => {}
    }
}

fn check_constraint(constraint: &At<'_>, known: &Names<'_>, errors: &mut Errors) {
    check_references(&constraint.get("requests"), known, errors);
    let (same, distinct) = (constraint.get("matchAttribute"), constraint.get("distinctAttribute"));
    if same.is_set() {
        names::check_fully_qualified(&same, errors);
    } else if distinct.is_set() {
        names::check_fully_qualified(&distinct, errors);
    } else if !has_feature("DRAConsumableCapacity") {
        errors.required(&same, "");
    } else {
        errors.required(
            constraint,
            r#"exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set"#,
        );
    }
}

/// A list of names of requests.
pub(super) fn check_references(requests: &At<'_>, known: &Names<'_>, errors: &mut Errors) {
    check_set(requests, REQUESTS, errors, |name, errors| check_reference(name, known, errors), itself);
}

pub(super) fn check_reference(name: &At<'_>, known: &Names<'_>, errors: &mut Errors) {
    let parts: Vec<&str> = name.text().split('/').collect();
    if parts.len() > 2 {
        errors.invalid(name, NO_REQUEST);
        return;
    }
    for part in parts {
        for message in text::label(part) {
            errors.invalid_as(name, part, message);
        }
    }
    if !known.has(name.text()) {
        errors.invalid_text(name, NO_REQUEST);
    }
}

/// What a driver is told. Parameters that are stored already may be of any length.
pub(super) fn check_config(config: &At<'_>, is_new: bool, errors: &mut Errors) {
    let opaque = config.get("opaque");
    if opaque.is_set() {
        names::check_declared_driver(&opaque.get("driver"), errors);
        check_raw(&opaque.get("parameters"), PARAMETERS, is_new, errors);
    } else {
        errors.required(&opaque, "");
    }
}

/// JSON that only a driver understands (`validateRawExtension`).
pub(super) fn check_raw(raw: &At<'_>, most: usize, is_new: bool, errors: &mut Errors) {
    if !raw.is_set() {
        errors.required(raw, "");
    } else if is_new && raw.value.to_string().len() > most {
        errors.push(FieldError::too_long(&raw.path, most));
    } else if !raw.value.is_object() {
        errors.invalid_as(raw, "<value omitted>", "must be a valid JSON object");
    }
}
