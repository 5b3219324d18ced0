//! Limits of namespaces: limit ranges and resource quotas.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use serde_json::Value;

use super::at::At;
use super::errors::Errors;
use super::pods::merge;
use super::printed::Fields;
use super::printed::Shape::{List, Plain, Struct};
use super::quantity::Quantity;
use super::{Again, Rules, fill, resources, text};

const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

/// The rules of limit ranges.
pub(crate) const fn limit_ranges() -> Rules {
    Rules {
        default: |range| {
            if let Some(spec) = fill::object(range, "spec") {
                fill::each(spec, "limits", default_limit);
            }
        },
        again: Again::Object,
        change_again: false,
        validate: |range| Errors::of(|errors| check_range(&At::root(range).dig(&["spec", "limits"]), errors)),
        ..Rules::none()
    }
}

fn default_limit(limit: &mut Value) {
    for list in LISTS {
        fill::round_up_amounts(limit, list);
    }
    if limit["type"] != "Container" {
        return;
    }
    // There in Kubernetes, whether they were sent or not.
    for list in ["default", "defaultRequest"] {
        if At::root(limit).get(list).is_empty() {
            fill::remove(limit, list);
        }
    }
    // What is not said follows: the default from the largest, the default request from the default and the smallest.
    for (list, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        if let Some(Value::Object(from)) = limit.get(from).cloned()
            && !from.is_empty()
            && let Some(into) = fill::map(limit, list)
        {
            merge(into, from);
        }
    }
}

fn check_range(limits: &At<'_>, errors: &mut Errors) {
    let mut kinds = BTreeSet::new();
    for limit in limits.items() {
        let kind = limit.get("type");
        let wrong = text::label_key(kind.text());
        if wrong.is_empty()
            && !matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim")
            && !kind.text().contains('/')
        {
            errors.invalid_text(&kind, "must be a standard limit type or fully qualified");
        }
        for message in wrong {
            errors.invalid_text(&kind, message);
        }
        if !kinds.insert(kind.text()) {
            errors.duplicate(&kind);
        }
        check_limit(&limit, kind.text(), errors);
    }
}

fn check_limit(limit: &At<'_>, kind: &str, errors: &mut Errors) {
    let names: resources::NameRule =
        if matches!(kind, "Pod" | "Container") { resources::container_name } else { resources::name };
    let mut all = BTreeSet::new();
    for list in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        let at = limit.get(list);
        if kind == "Pod" && list.starts_with("default") {
            if !at.is_empty() {
                errors.forbidden(&at, "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        for (name, entry) in at.entries() {
            names(name, &entry, errors);
            all.insert(name);
        }
    }
    let storage = |list: &str| limit.get(list).get("storage").is_set();
    if kind == "PersistentVolumeClaim" && !storage("min") && !storage("max") {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.required(&limit.get("limits"), detail);
    }
    for name in all {
        check_order(limit, name, errors);
    }
}

/// That smallest, default request, default and largest are in this order.
fn check_order(limit: &At<'_>, name: &str, errors: &mut Errors) {
    let of = |list: &str| Quantity::of(limit.get(list).entry(name).value);
    let words = |list: &str| match list {
        "min" => "min value",
        "max" => "max value",
        "default" => "default value",
        _ => "default request value",
    };
    // The smaller, the larger, the list that the error names, and the list whose value it shows.
    let orders = [
        ("min", "max", "min", "min"),
        ("min", "defaultRequest", "defaultRequest", "defaultRequest"),
        ("defaultRequest", "max", "defaultRequest", "defaultRequest"),
        ("defaultRequest", "default", "defaultRequest", "defaultRequest"),
        ("min", "default", "default", "min"),
        ("default", "max", "default", "max"),
    ];
    for (small, large, named, shown) in orders {
        let (Some(less), Some(more)) = (of(small), of(large)) else { continue };
        if less > more {
            let other = if (small, large) == ("defaultRequest", "default") {
                "default limit value"
            } else {
                words(large)
            };
            let detail = format!("{} {less} is greater than {other} {more}", words(small));
            let value = of(shown).map(|value| value.to_string());
            errors.invalid_as(&limit.get(named).entry(name), value, detail);
        }
    }
    let ratio = limit.get("maxLimitRequestRatio").entry(name);
    if let (Some(ratio_value), Some(one)) = (Quantity::of(ratio.value), Quantity::parse("1")) {
        if ratio_value < one {
            errors.invalid_as(&ratio, ratio_value.to_string(), format!("ratio {ratio_value} is less than 1"));
        }
        if let (Some(least), Some(most)) = (of("min"), of("max")) {
            check_ratio(&ratio, ratio_value, least, most, errors);
        }
    }
    if let (Some(limited), Some(asked)) = (of("default"), of("defaultRequest"))
        && !resources::may_overcommit(name)
        && limited != asked
    {
        let detail = format!("default value {limited} must equal to defaultRequest value {asked} in {name}");
        errors.invalid_as(&limit.get("defaultRequest").entry(name), asked.to_string(), detail);
    }
}

/// A ratio that the smallest and the largest value allow.
fn check_ratio(at: &At<'_>, ratio: Quantity, least: Quantity, most: Quantity, errors: &mut Errors) {
    let limit = most.approximate() / least.approximate();
    if ratio.approximate() > limit {
        let limit = if limit.is_infinite() { "+Inf".to_owned() } else { format!("{limit:.6}") };
        errors.invalid_as(at, ratio.to_string(), format!("ratio {ratio} is greater than max/min = {limit}"));
    }
}

/// The rules of resource quotas.
pub(crate) const fn quotas() -> Rules {
    Rules {
        default: |quota| {
            if let Some(spec) = fill::object(quota, "spec") {
                fill::canonical_map(spec, "hard");
            }
            if let Some(status) = fill::object(quota, "status") {
                fill::canonical_map(status, "hard");
                fill::canonical_map(status, "used");
            }
        },
        prepare_create: |quota| fill::set(quota, "status", serde_json::json!({})),
        validate: |quota| Errors::of(|errors| check_quota(&At::root(quota).get("spec"), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
                check_quota(&new, errors);
                let scopes = |spec: &At<'_>| -> BTreeSet<String> {
                    spec.get("scopes").items().map(|scope| scope.text().to_owned()).collect()
                };
                if scopes(&new) != scopes(&old) {
                    errors.invalid(&new.get("scopes"), "field is immutable");
                }
            })
        },
        validate_status: |new, _| {
            Errors::of(|errors| {
                for list in ["hard", "used"] {
                    check_amounts(&At::root(new).dig(&["status", list]), errors);
                }
            })
        },
        ..Rules::none()
    }
}

fn check_amounts(list: &At<'_>, errors: &mut Errors) {
    for (name, entry) in list.entries() {
        resources::quota_name(name, &entry, errors);
        resources::amount(name, &entry, errors);
    }
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];

fn check_quota(spec: &At<'_>, errors: &mut Errors) {
    let hard = spec.get("hard");
    check_amounts(&hard, errors);
    let scopes = spec.get("scopes");
    for scope in scopes.items() {
        if !SCOPES.contains(&scope.text()) {
            errors.invalid(&scopes, "unsupported scope");
        }
        for _ in unsuitable(scope.text(), &hard) {
            errors.invalid(&scopes, "unsupported scope applied to resource");
        }
    }
    check_conflicts(&scopes, &scopes.items().map(|scope| scope.text()).collect(), &scopes, errors);
    check_scope_selector(&spec.get("scopeSelector"), &hard, &scopes, errors);
}

fn check_conflicts(at: &At<'_>, given: &BTreeSet<&str>, shown: &At<'_>, errors: &mut Errors) {
    for (one, other) in [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")] {
        if given.contains(one) && given.contains(other) {
            errors.invalid_as(at, shown.value.clone(), "conflicting scopes");
        }
    }
}

/// The limited resources that have no such scope.
fn unsuitable<'a>(scope: &str, hard: &At<'a>) -> Vec<&'a str> {
    let suits = |name: &str| match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        scope if SCOPES.contains(&scope) => {
            let computed =
                ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
            name == "pods" || computed.contains(&name)
        }
        _ => true,
    };
    hard.entries()
        .map(|(name, _)| name)
        .filter(|name| resources::is_quota_standard(name) && !suits(name))
        .collect()
}

/// `core.ScopeSelector`.
const SCOPE_SELECTOR: Fields = &[(
    "MatchExpressions",
    "matchExpressions",
    List(&[
        ("ScopeName", "scopeName", Plain("\"\"")),
        ("Operator", "operator", Plain("\"\"")),
        ("Values", "values", Plain("null")),
    ]),
)];

fn check_scope_selector(selector: &At<'_>, hard: &At<'_>, scopes: &At<'_>, errors: &mut Errors) {
    if !selector.is_set() {
        return;
    }
    // Kubernetes names the list and not the item.
    let list = selector.get("matchExpressions");
    let mut given = BTreeSet::new();
    for item in list.items() {
        let field = |name: &str| At { path: format!("{}.{name}", list.path), ..item.get(name) };
        let (scope, operator, values) = (field("scopeName"), field("operator"), field("values"));
        if !SCOPES.contains(&scope.text()) {
            errors.invalid_text(&scope, "unsupported scope");
        }
        for _ in unsuitable(scope.text(), hard) {
            let error = FieldError::invalid(&list.path, Value::Null, "unsupported scope applied to resource");
            errors.push(error.printed(Struct(SCOPE_SELECTOR).of(selector.value)));
        }
        let plain = !matches!(scope.text(), "PriorityClass" | "VolumeAttributesClass")
            && SCOPES.contains(&scope.text());
        if plain && operator.text() != "Exists" {
            errors.invalid_text(&operator, "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity");
        }
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                errors.required(
                    &values,
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
                );
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors.invalid(
                    &values,
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
                );
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.invalid_text(&operator, "not a valid selector operator"),
        }
        given.insert(scope.text());
    }
    check_conflicts(&list, &given, scopes, errors);
}
