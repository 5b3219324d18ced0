//! The kind `PriorityClass` of `scheduling.k8s.io/v1`.

use kubewright_meta::rules::at::At;
use kubewright_meta::rules::errors::Errors;
use kubewright_meta::rules::fill;
use kubewright_table as table;

use crate::rules::{Generation, Rules};
use crate::{BuiltIn, Plugin};

/// All that is known of it.
pub static PRIORITY_CLASS: BuiltIn = BuiltIn {
    short_names: &["pc"],
    columns: table::cluster::PRIORITY_CLASSES,
    rules: RULES,
    plugins: &[Plugin::Priority],
    ..BuiltIn::cluster_scoped("io.k8s.api.scheduling.v1.PriorityClass", "scheduling.k8s.io/priorityclasses")
};

/// Priorities above this one are the system's.
const HIGHEST_PRIORITY: i64 = 1_000_000_000;
/// The priority classes of the system.
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2 * HIGHEST_PRIORITY),
    ("system-node-critical", 2 * HIGHEST_PRIORITY + 1000),
];

/// The rules of priority classes (`pkg/apis/scheduling/validation`).
const RULES: Rules = Rules {
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
};

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
