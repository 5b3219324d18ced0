//! Priority levels (`pkg/apis/flowcontrol/v1/defaults.go`, `ValidatePriorityLevelConfiguration`).

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::{At, same};
use super::super::errors::Errors;
use super::super::{Again, Generation, Rules, fill};
use super::{bootstrap, check_conditions, printed};

const MOST_QUEUES: i64 = 10_000_000;
/// How many bits of a request's hash may be spent on dealing it a hand of queues.
const HASH_BITS: f64 = 60.0;
const OLD_ANNOTATION: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";
const SHARES: &str = "must be a non-negative integer";

/// The rules of priority levels.
pub(crate) const fn rules() -> Rules {
    Rules {
        default,
        prepare_create: |level| fill::set(level, "status", serde_json::json!({})),
        generation: Generation::Content,
        again: Again::Object,
        change_again: false,
        status_change_again: false,
        validate: |level| Errors::of(|errors| check(&At::root(level), errors)),
        validate_status: |new, _| Errors::of(|errors| check_conditions(&At::root(new).get("status"), errors)),
        ..Rules::none()
    }
}

fn default(level: &mut Value) {
    fill::object(level, "status");
    let Some(spec) = fill::object(level, "spec") else { return };
    for (kind, shares) in [("exempt", 0), ("limited", 30)] {
        if let Some(part) = fill::present(spec, kind) {
            fill::absent(part, "nominalConcurrencyShares", shares);
            fill::absent(part, "lendablePercent", 0);
        }
    }
    if let Some(queuing) = fill::reach(spec, &["limited", "limitResponse", "queuing"]) {
        fill::zero(queuing, "handSize", 8);
        fill::zero(queuing, "queues", 64);
        fill::zero(queuing, "queueLengthLimit", 50);
    }
}

fn check(level: &At<'_>, errors: &mut Errors) {
    let name = level.dig(&["metadata", "name"]).text();
    let annotations = level.dig(&["metadata", "annotations"]);
    if annotations.entry(OLD_ANNOTATION).is_set() {
        errors.forbidden(&annotations, format!("annotation '{OLD_ANNOTATION}' is forbidden"));
    }
    let spec = level.get("spec");
    check_type(name, &spec, errors);
    check_mandatory(name, &spec, errors);
}

fn check_type(name: &str, spec: &At<'_>, errors: &mut Errors) {
    let (kind, exempt, limited) = (spec.get("type"), spec.get("exempt"), spec.get("limited"));
    if (name == "exempt") != (kind.text() == "Exempt") {
        errors.invalid_text(&kind, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                errors.forbidden(&limited, "must be nil if the type is not Limited");
            }
            check_shares(&exempt, errors);
            errors.within(&exempt.get("lendablePercent"), 0, 100);
        }
        "Limited" => {
            if exempt.is_set() {
                errors.forbidden(&exempt, "must be nil if the type is Limited");
            }
            if limited.is_set() {
                check_limited(&limited, errors);
            } else {
                errors.required(&limited, "must not be empty when type is Limited");
            }
        }
        _ => errors.need_one_of(&kind, &["Exempt", "Limited"]),
    }
}

fn check_shares(part: &At<'_>, errors: &mut Errors) {
    let shares = part.get("nominalConcurrencyShares");
    if shares.number().is_some_and(|number| number < 0) {
        errors.invalid(&shares, SHARES);
    }
}

fn check_limited(limited: &At<'_>, errors: &mut Errors) {
    check_shares(limited, errors);
    let response = limited.get("limitResponse");
    let (kind, queuing) = (response.get("type"), response.get("queuing"));
    match kind.text() {
        "Reject" if queuing.is_set() => {
            errors.forbidden(&queuing, "must be nil if limited.limitResponse.type is not Limited");
        }
        "Reject" => {}
        "Queue" if queuing.is_set() => check_queuing(&queuing, errors),
        "Queue" => errors.required(&queuing, "must not be empty if limited.limitResponse.type is Limited"),
        _ => errors.need_one_of(&kind, &["Queue", "Reject"]),
    }
    errors.within(&limited.get("lendablePercent"), 0, 100);
    let borrowing = limited.get("borrowingLimitPercent");
    if borrowing.number().is_some_and(|number| number < 0) {
        errors.invalid(&borrowing, format!("if specified, {SHARES}"));
    }
}

fn check_queuing(queuing: &At<'_>, errors: &mut Errors) {
    let number = |at: &At<'_>| at.number().unwrap_or_default();
    let (length, queues, hand) =
        (queuing.get("queueLengthLimit"), queuing.get("queues"), queuing.get("handSize"));
    for at in [&length, &queues] {
        if number(at) <= 0 {
            errors.invalid(at, "must be positive");
        }
    }
    if number(&queues) > MOST_QUEUES {
        errors.invalid(&queues, format!("must not be greater than {MOST_QUEUES}"));
    }
    let (deck, size) = (number(&queues), number(&hand));
    if size <= 0 {
        errors.invalid(&hand, "must be positive");
    } else if size > deck {
        errors.invalid(&hand, format!("should not be greater than queues ({deck})"));
    } else if bits(deck, size) > HASH_BITS {
        let detail = format!(
            "required entropy bits of deckSize {deck} and handSize {size} should not be greater than {HASH_BITS}"
        );
        errors.invalid(&hand, detail);
    }
}

/// How many bits of a hash it takes to deal so many cards of such a deck
/// (`k8s.io/apiserver/pkg/util/shufflesharding`).
fn bits(deck: i64, hand: i64) -> f64 {
    match (u32::try_from(deck), u32::try_from(hand)) {
        (Ok(deck), Ok(hand)) => (f64::from(deck).log2() * f64::from(hand)).ceil(),
        _ => f64::INFINITY,
    }
}

/// The levels that every cluster has stay as they are, but for what is exempt.
fn check_mandatory(name: &str, spec: &At<'_>, errors: &mut Errors) {
    let Some(wanted) = bootstrap::mandatory_level(name) else { return };
    let (good, rest) = if name == "exempt" {
        let fixed = spec.get("type").text() == "Exempt" && !spec.get("limited").is_set();
        (fixed, " except the 'spec.exempt' field")
    } else {
        (same(&wanted, spec.value), "")
    };
    if !good {
        let detail = format!("spec of '{name}'{rest} must equal the fixed value");
        let error = FieldError::invalid(&spec.path, Value::Null, detail);
        errors.push(error.printed(printed::level(spec.value)));
    }
}
