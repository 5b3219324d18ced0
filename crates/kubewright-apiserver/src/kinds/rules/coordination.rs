//! The small groups: leases, priority classes, runtime classes and service accounts.

use serde_json::Value;

use super::at::At;
use super::errors::Errors;
use super::pods::check_tolerations;
use super::{Again, Finalizers, Generation, Rules, fill, resources, selector, text};

/// The rules of leases (`pkg/apis/coordination/validation`).
pub(crate) const fn leases() -> Rules {
    Rules {
        default: |lease| {
            fill::object(lease, "spec");
        },
        // Coordinated leader election is an alpha feature.
        prepare_create: |lease| {
            if let Some(spec) = fill::present(lease, "spec") {
                fill::remove(spec, "strategy");
                fill::remove(spec, "preferredHolder");
            }
        },
        finalizers: Finalizers::Syntax,
        validate: |lease| Errors::of(|errors| check_lease(&At::root(lease).get("spec"), errors)),
        validate_update: |new, _| Errors::of(|errors| check_lease(&At::root(new).get("spec"), errors)),
        ..Rules::none()
    }
}

fn check_lease(spec: &At<'_>, errors: &mut Errors) {
    errors.positive(&spec.get("leaseDurationSeconds"));
    errors.non_negative(&spec.get("leaseTransitions"));
}

/// Priorities above this one are the system's.
const HIGHEST_PRIORITY: i64 = 1_000_000_000;
/// The priority classes of the system.
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2 * HIGHEST_PRIORITY),
    ("system-node-critical", 2 * HIGHEST_PRIORITY + 1000),
];

/// The rules of priority classes (`pkg/apis/scheduling/validation`).
pub(crate) const fn priority_classes() -> Rules {
    Rules {
        default: |class| {
            fill::absent(class, "preemptionPolicy", "PreemptLowerPriority");
            fill::absent(class, "value", 0);
        },
        generation: Generation::Fixed,
        validate: |class| Errors::of(|errors| check_priority(&At::root(class), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new), At::root(old));
                if new.get("value").number() != old.get("value").number() {
                    errors.forbidden(&new.get("value"), "may not be changed in an update.");
                }
                errors.immutable(&new.get("preemptionPolicy"), &old.get("preemptionPolicy"));
            })
        },
        ..Rules::none()
    }
}

fn check_priority(class: &At<'_>, errors: &mut Errors) {
    let (name, value) = (class.dig(&["metadata", "name"]), class.get("value"));
    let number = value.number().unwrap_or_default();
    if name.text().starts_with("system-") {
        let name_text = name.text();
        let why = match SYSTEM_CLASSES.iter().find(|(known, _)| *known == name_text) {
            None => format!("{name_text} is not a known system priority class"),
            Some((_, wanted)) if *wanted != number => {
                format!("value of {name_text} PriorityClass must be {wanted}")
            }
            Some(_) if class.get("globalDefault").is_true() => {
                format!("globalDefault of {name_text} PriorityClass must be false")
            }
            Some(_) => return,
        };
        let detail = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
        );
        errors.forbidden(&name, detail);
    } else if number > HIGHEST_PRIORITY {
        errors.forbidden(
            &value,
            format!("maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}"),
        );
    }
    let policy = class.get("preemptionPolicy");
    if policy.is_set() {
        errors.need_one_of(&policy, &["PreemptLowerPriority", "Never"]);
    }
}

/// The rules of runtime classes (`pkg/apis/node/validation`).
pub(crate) const fn runtime_classes() -> Rules {
    Rules {
        default: |class| {
            if let Some(overhead) = fill::present(class, "overhead") {
                fill::canonical_map(overhead, "podFixed");
            }
        },
        again: Again::Object,
        finalizers: Finalizers::Syntax,
        validate: |class| Errors::of(|errors| check_runtime(&At::root(class), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                errors.immutable(&At::root(new).get("handler"), &At::root(old).get("handler"));
            })
        },
        ..Rules::none()
    }
}

fn check_runtime(class: &At<'_>, errors: &mut Errors) {
    errors.need_text(&class.get("handler"), text::label);
    for (name, entry) in class.dig(&["overhead", "podFixed"]).entries() {
        let at = At { path: format!("overhead.limits[{name}]"), ..entry };
        resources::container_name(name, &at, errors);
        resources::amount(name, &at, errors);
    }
    let scheduling = class.get("scheduling");
    selector::check_labels(&scheduling.get("nodeSelector"), errors);
    check_tolerations(&scheduling.get("tolerations"), errors);
}

/// The rules of service accounts, which are all metadata.
pub(crate) const fn service_accounts() -> Rules {
    Rules {
        again: Again::Metadata,
        prepare_create: keep_names_of_secrets,
        prepare_update: |account, _| keep_names_of_secrets(account),
        ..Rules::none()
    }
}

/// Of the secrets only the names are kept.
fn keep_names_of_secrets(account: &mut Value) {
    fill::each(account, "secrets", |secret| {
        if let Some(fields) = secret.as_object_mut() {
            fields.retain(|field, _| field == "name");
        }
    });
}
