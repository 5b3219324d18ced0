//! The group `rbac.authorization.k8s.io` (`pkg/apis/rbac/validation`).

use kubewright_meta::FieldError;
use kubewright_meta::selector::LabelSelector;
use kubewright_spec::Version;
use serde_json::Value;

use super::at::{At, same};
use super::errors::Errors;
use super::{Again, NameRule, Rules, fill, selector, text, version};

const GROUP: &str = "rbac.authorization.k8s.io";

const BASE: Rules = Rules { name: NameRule::PathSegment, again: Again::Object, ..Rules::none() };

/// The rules of roles.
pub(crate) const fn roles() -> Rules {
    Rules {
        validate: |role| Errors::of(|errors| check_rules(&At::root(role).get("rules"), true, errors)),
        default: show_rules,
        ..BASE
    }
}

/// The rules of cluster roles.
pub(crate) const fn cluster_roles() -> Rules {
    Rules {
        default: show_rules,
        validate: |role| {
            Errors::of(|errors| {
                let role = At::root(role);
                check_rules(&role.get("rules"), false, errors);
                let aggregation = role.get("aggregationRule");
                let selectors = aggregation.get("clusterRoleSelectors");
                if aggregation.is_set() && selectors.is_empty() {
                    let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
                    errors.required(&selectors, detail);
                }
                for wanted in selectors.items() {
                    selector::check(&wanted, errors);
                    if LabelSelector::from_object(wanted.value).is_err() {
                        errors.invalid_as(&wanted, Value::Null, "invalid label selector.");
                    }
                }
            })
        },
        ..BASE
    }
}

/// `rules` is told even when there are none.
fn show_rules(role: &mut Value) {
    if let Some(fields) = role.as_object_mut() {
        fields.entry("rules").or_insert(Value::Null);
    }
}

/// The rules of role bindings.
pub(crate) const fn role_bindings() -> Rules {
    Rules {
        default: default_binding,
        validate: |binding| Errors::of(|errors| check_binding(&At::root(binding), true, errors)),
        validate_update: check_same_role,
        ..BASE
    }
}

/// The rules of cluster role bindings.
pub(crate) const fn cluster_role_bindings() -> Rules {
    Rules {
        default: default_binding,
        validate: |binding| Errors::of(|errors| check_binding(&At::root(binding), false, errors)),
        validate_update: check_same_role,
        ..BASE
    }
}

fn default_binding(binding: &mut Value) {
    if let Some(role) = fill::object(binding, "roleRef") {
        fill::blank(role, "apiGroup", GROUP);
    }
    fill::each(binding, "subjects", |subject| {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            fill::blank(subject, "apiGroup", GROUP);
        }
    });
}

fn check_rules(rules: &At<'_>, namespaced: bool, errors: &mut Errors) {
    for rule in rules.items() {
        if rule.get("verbs").is_empty() {
            errors.required(&rule.get("verbs"), "verbs must contain at least one value");
        }
        let urls = rule.get("nonResourceURLs");
        if !urls.is_empty() {
            if namespaced {
                errors.invalid(&urls, "namespaced rules cannot apply to non-resource URLs");
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !rule.get(field).is_empty()) {
                errors.invalid(&urls, "rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        if rule.get("apiGroups").is_empty() {
            errors.required(&rule.get("apiGroups"), "resource rules must supply at least one api group");
        }
        if rule.get("resources").is_empty() {
            errors.required(&rule.get("resources"), "resource rules must supply at least one resource");
        }
    }
}

fn check_binding(binding: &At<'_>, namespaced: bool, errors: &mut Errors) {
    let role = binding.get("roleRef");
    errors.one_of(&role.get("apiGroup"), &[GROUP]);
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    errors.one_of(&role.get("kind"), kinds);
    errors.need_text(&role.get("name"), text::path_segment);
    for subject in binding.get("subjects").items() {
        check_subject(&subject, namespaced, errors);
    }
}

fn check_subject(subject: &At<'_>, namespaced: bool, errors: &mut Errors) {
    let (kind, name, group) = (subject.get("kind"), subject.get("name"), subject.get("apiGroup"));
    errors.need(&name);
    match kind.text() {
        "ServiceAccount" => {
            errors.maybe_text(&name, text::subdomain);
            if !group.is_empty() {
                errors.not_supported(&group, &[""]);
            }
            if !namespaced {
                errors.need(&subject.get("namespace"));
            }
        }
        "User" | "Group" => errors.one_of(&group, &[GROUP]),
        _ => errors.not_supported(&kind, &["ServiceAccount", "User", "Group"]),
    }
}

fn check_same_role(new: &Value, old: &Value) -> Vec<FieldError> {
    let role = At::root(new).get("roleRef");
    if same(role.value, At::root(old).get("roleRef").value) {
        return Vec::new();
    }
    let of = |field: &str| role.get(field).text();
    let printed =
        format!("{{\"APIGroup\":{:?},\"Kind\":{:?},\"Name\":{:?}}}", of("apiGroup"), of("kind"), of("name"));
    let detail = if version::since(Version::V1_37) { "field is immutable" } else { "cannot change roleRef" };
    vec![FieldError::invalid(&role.path, Value::Null, detail).printed(printed)]
}
