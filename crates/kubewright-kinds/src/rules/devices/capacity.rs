//! How much of a device may be asked for: its capacities, and the counters that parts of a device share.

use kubewright_meta::FieldError;
use kubewright_spec::Version;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::quantity::Quantity;
use super::super::text;
use super::super::version::since;
use super::{check_set, names, shapes};

/// How many values a policy may list.
const OPTIONS: usize = 10;
const VALUE: usize = 64;

/// An attribute has one value.
pub(super) fn check_attribute(attribute: &At<'_>, errors: &mut Errors) {
    let (string, version) = (attribute.get("string"), attribute.get("version"));
    if string.text().len() > VALUE {
        errors.push(FieldError::too_long(&string.path, VALUE));
    }
    if version.is_set() {
        if !is_semver(version.text()) {
            errors.invalid(&version, "must be a string compatible with semver.org spec 2.0.0");
        }
        if version.text().len() > VALUE {
            errors.push(FieldError::too_long(&version.path, VALUE));
        }
    }
    const ONE: &str = "exactly one value must be specified";
    const ALL: &str = "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`";
    let given: Vec<&str> = ["int", "bool", "string", "version"]
        .into_iter()
        .filter(|field| attribute.get(field).is_set())
        .collect();
    let is_declared = since(Version::V1_37);
    match given.len() {
        0 if is_declared => errors.invalid_as(attribute, "", format!("must specify one of: {ALL}")),
        0 => errors.invalid_as(attribute, "", ONE),
        1 => {}
        _ if is_declared => {
            let given = format!("{{{}}}", given.join(", "));
            errors.invalid_as(attribute, given, format!("must specify exactly one of: {ALL}"));
        }
        _ => {
            let error = FieldError::invalid(&attribute.path, attribute.value.clone(), ONE);
            errors.push(error.printed(shapes::attribute(attribute.value)));
        }
    }
}

/// Whether a text is a version as semver.org has it.
fn is_semver(text: &str) -> bool {
    let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
    let (core, before) = rest.split_once('-').map_or((rest, None), |(core, before)| (core, Some(before)));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = |part: &str| is_digits(part) && (part == "0" || !part.starts_with('0'));
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && before.is_none_or(|parts| {
            parts.split('.').all(|part| is_number(part) || is_word(part) && !is_digits(part))
        })
        && build.is_none_or(is_word)
}

/// Counters: sets of them that a slice has, and what a device takes of one.
pub(super) fn check_counters(counters: &At<'_>, most: usize, errors: &mut Errors) {
    if !errors.need(counters) {
        return;
    }
    super::check_map(
        counters,
        most,
        errors,
        |at, key, errors| {
            for message in text::label(key) {
                errors.invalid_as(at, key, message);
            }
        },
        |_, _| {},
    );
}

/// A capacity: only one that many claims share says how much each may ask for.
pub(super) fn check_capacity(capacity: &At<'_>, is_shared: bool, errors: &mut Errors) {
    let policy = capacity.get("requestPolicy");
    if !policy.is_set() {
        return;
    }
    if !is_shared {
        errors.forbidden(&policy, "allowMultipleAllocations must be true");
        return;
    }
    let (values, range) = (policy.get("validValues"), policy.get("validRange"));
    let default = policy.get("default");
    let most = Quantity::of(capacity.get("value").value).unwrap_or(Quantity::ZERO);
    match (!values.is_empty(), range.is_set()) {
        (true, true) => errors.forbidden(
            &policy,
            "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time",
        ),
        (true, false) => match Quantity::of(default.value) {
            None => errors.required(&default, "required when validValues is defined"),
            Some(default) => check_values(&values, default, most, errors),
        },
        (false, true) => match Quantity::of(default.value) {
            None => errors.required(&default, "required when validRange is defined"),
            Some(default) => check_range(&range, default, most, errors),
        },
        (false, false) => {}
    }
}

fn check_values(values: &At<'_>, default: Quantity, most: Quantity, errors: &mut Errors) {
    let amounts: Vec<(At<'_>, Quantity)> =
        values.items().filter_map(|item| Quantity::of(item.value).map(|amount| (item, amount))).collect();
    for pair in amounts.windows(2) {
        if pair[0].1 > pair[1].1 {
            errors.invalid_as(&pair[1].0, pair[1].1.to_string(), "values must be sorted in ascending order");
        }
    }
    let mut is_option = false;
    check_set(
        values,
        OPTIONS,
        errors,
        |item, errors| {
            let Some(amount) = Quantity::of(item.value) else { return };
            if amount > most {
                let detail = format!("option is larger than capacity value: {most}");
                errors.invalid_as(item, amount.to_string(), detail);
            }
            is_option |= amount == default;
        },
        |item| Quantity::of(item.value).map(|amount| amount.whole().to_string()).unwrap_or_default(),
    );
    if !is_option {
        let detail = "default value is not valid according to the requestPolicy";
        errors.invalid_as(values, default.to_string(), detail);
    }
}

/// Where a default outside of the bounds is told of: until v1.36 at the bound.
fn default_at<'a>(range: &At<'a>, bound: &At<'a>) -> At<'a> {
    if since(Version::V1_37) { range.get("default") } else { bound.clone() }
}

fn check_range(range: &At<'_>, default: Quantity, capacity: Quantity, errors: &mut Errors) {
    let (low_at, high_at, step_at) = (range.get("min"), range.get("max"), range.get("step"));
    let Some(low) = Quantity::of(low_at.value) else {
        errors.required(&low_at, "required when validRange is defined");
        return;
    };
    if low > capacity {
        errors.invalid_as(&low_at, low.to_string(), format!("min is larger than capacity value: {capacity}"));
    }
    if default < low {
        errors.invalid_as(
            &default_at(range, &low_at),
            default.to_string(),
            format!("default is less than min: {low}"),
        );
    }
    let high = Quantity::of(high_at.value);
    if let Some(high) = high {
        if low > high {
            errors.invalid_as(&high_at, low.to_string(), format!("min is larger than max: {high}"));
        }
        if high > capacity {
            errors.invalid_as(
                &high_at,
                high.to_string(),
                format!("max is larger than capacity value: {capacity}"),
            );
        }
        if default > high {
            errors.invalid_as(
                &default_at(range, &high_at),
                default.to_string(),
                format!("default is more than max: {high}"),
            );
        }
    }
    let Some(step) = Quantity::of(step_at.value) else { return };
    // kube-apiserver v1.36 panics there; these are the words of v1.37.
    if step.sign().is_eq() || since(Version::V1_37) && step.sign().is_lt() {
        errors.invalid_as(&step_at, step.to_string(), "must be greater than zero");
        return;
    }
    let added = low + step;
    if added > capacity {
        let detail = format!("one step {added} is larger than capacity value: {capacity}");
        errors.invalid_as(&step_at, step.to_string(), detail);
    }
    // From v1.37 on, what is over the numbers of 64 bits is refused; until then the arithmetic runs over.
    let mut is_safe = true;
    for (name, amount) in
        [("default", Some(default)), ("min", Some(low)), ("max", high), ("step", Some(step))]
    {
        let Some(amount) = amount.filter(|_| since(Version::V1_37)) else { continue };
        let why = match amount.sign() {
            std::cmp::Ordering::Less => super::super::errors::NOT_NEGATIVE,
            _ if amount.units() > i128::from(i64::MAX) => "must not be larger than 9223372036854775807",
            _ => continue,
        };
        errors.invalid_as(&range.get(name), amount.to_string(), why);
        is_safe = false;
    }
    if !is_safe {
        return;
    }
    for value in [Some(default), high].into_iter().flatten() {
        if (value.units() - low.units()) % step.units() != 0 {
            let detail = format!("value is not a multiple of a given step ({step}) from ({low})");
            errors.invalid_as(&step_at, value.to_string(), detail);
        }
    }
}

/// The names and amounts of a device's capacities.
pub(super) fn check_capacities(capacities: &At<'_>, is_shared: bool, errors: &mut Errors) {
    for (key, capacity) in capacities.entries() {
        names::check_qualified(if since(Version::V1_36) { capacities } else { &capacity }, key, errors);
        check_capacity(&names::shortened(capacities, key, &capacity), is_shared, errors);
    }
}
