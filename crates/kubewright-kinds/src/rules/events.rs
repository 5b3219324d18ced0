//! Events in both of their versions (`pkg/apis/core/validation/events.go`). They are stored as core events, and that
//! is what the errors name.

use kubewright_meta::FieldError;
use serde_json::Value;

use super::at::At;
use super::errors::Errors;
use super::{Finalizers, NameRule, Rules, convert, fill, printed, text};

/// What may not change, in the order in which it is looked at: the reason twice.
const FIXED: [&str; 14] = [
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
];

/// The rules of core events. Their metadata is checked by the generic part alone.
pub(crate) const fn core_rules() -> Rules {
    Rules {
        default: default_core,
        name: NameRule::PathSegment,
        finalizers: Finalizers::Syntax,
        judges_metadata: false,
        change_again: false,
        validate: |event| Errors::of(|errors| check(&At::root(event), "reportingComponent", errors)),
        validate_update: |new, _| Errors::of(|errors| check(&At::root(new), "reportingComponent", errors)),
        ..Rules::none()
    }
}

/// The rules of `events.k8s.io/v1`.
pub(crate) const fn rules() -> Rules {
    Rules {
        default: |event| {
            for key in ["eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"] {
                fill::absent(event, key, Value::Null);
            }
            fill::object(event, "regarding");
            fill::object(event, "deprecatedSource");
        },
        validate: |event| {
            let event = stored(event);
            Errors::of(|errors| check_new(&At::root(&event), errors))
        },
        validate_update: |new, old| {
            let (new, old) = (stored(new), stored(old));
            Errors::of(|errors| check_change(&At::root(&new), &At::root(&old), errors))
        },
        ..Rules::none()
    }
}

fn default_core(event: &mut Value) {
    fill::object(event, "involvedObject");
    fill::object(event, "source");
    for key in ["firstTimestamp", "lastTimestamp", "eventTime"] {
        fill::absent(event, key, Value::Null);
    }
    for key in ["reportingComponent", "reportingInstance"] {
        fill::absent(event, key, "");
    }
}

fn stored(event: &Value) -> Value {
    let mut event = event.clone();
    convert::events::to_core(&mut event);
    event
}

fn check(event: &At<'_>, controller: &str, errors: &mut Errors) {
    let own = event.dig(&["metadata", "namespace"]).text();
    let involved = event.dig(&["involvedObject", "namespace"]);
    let other = involved.text();
    let timed = event.get("eventTime").is_set();
    let fits = match (timed, other) {
        (false, "") => matches!(own, "" | "default"),
        (false, other) => own == other,
        (true, "") => matches!(own, "default" | "kube-system"),
        (true, _) => true,
    };
    if !fits {
        errors.invalid_text(&involved, "does not match event.namespace");
    }
    if timed {
        let reporter = At { path: controller.to_owned(), ..event.get("reportingComponent") };
        errors.need(&reporter);
        errors.text(&reporter, text::label_key);
        for field in ["reportingInstance", "action", "reason"] {
            errors.need(&event.get(field));
            check_length(&event.get(field), 128, errors);
        }
        check_length(&event.get("message"), 1024, errors);
    }
    for message in text::subdomain(own) {
        errors.push(FieldError::invalid("namespace", own, message));
    }
}

fn check_length(at: &At<'_>, limit: usize, errors: &mut Errors) {
    if at.text().len() > limit {
        errors.invalid_as(at, "", format!("can have at most {limit} characters"));
    }
}

/// A new event of `events.k8s.io`: what is deprecated must not be used.
fn check_new(event: &At<'_>, errors: &mut Errors) {
    check(event, "reportingController", errors);
    check_series(&event.get("series"), errors);
    errors.need(&event.get("eventTime"));
    let kind = event.get("type");
    if !matches!(kind.text(), "Normal" | "Warning") {
        errors.invalid_as(&kind, "", format!("has invalid value: {}", kind.text()));
    }
    let source = event.get("source");
    let used = [
        ("firstTimestamp", event.get("firstTimestamp").is_set()),
        ("lastTimestamp", event.get("lastTimestamp").is_set()),
        ("count", event.get("count").number().unwrap_or_default() != 0),
        ("source", !source.get("component").is_empty() || !source.get("host").is_empty()),
    ];
    for (field, _) in used.into_iter().filter(|(_, used)| *used) {
        errors.push(FieldError::invalid(field, "", "needs to be unset"));
    }
}

fn check_series(series: &At<'_>, errors: &mut Errors) {
    if !series.is_set() {
        return;
    }
    if series.get("count").number().unwrap_or_default() < 2 {
        errors.invalid_as(&series.get("count"), "", "should be at least 2");
    }
    errors.need(&series.get("lastObservedTime"));
}

fn check_change(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    check(new, "reportingController", errors);
    if !new.get("series").same(&old.get("series")) {
        check_series(&new.get("series"), errors);
    }
    for field in &FIXED {
        let shown = if *field == "reportingComponent" { "reportingController" } else { field };
        let now = At { path: shown.to_owned(), ..new.get(field) };
        let before = old.get(field);
        // A reference to nothing is not none.
        let is_other = *field == "related" && now.is_set() != before.is_set();
        if is_other || !now.same_or_empty(&before) {
            match *field {
                "reason" | "message" | "type" | "action" | "reportingComponent" | "reportingInstance" => {
                    errors.invalid_text(&now, "field is immutable");
                }
                "firstTimestamp" | "lastTimestamp" => {
                    errors.invalid_as(&now, printed::time(&now), "field is immutable");
                }
                _ => errors.invalid(&now, "field is immutable"),
            }
        }
    }
}
