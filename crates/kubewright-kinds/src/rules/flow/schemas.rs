//! Flow schemas (`pkg/apis/flowcontrol/v1/defaults.go`, `ValidateFlowSchema`).

use kubewright_meta::FieldError;
use serde_json::{Value, json};

use super::super::at::{At, same};
use super::super::errors::Errors;
use super::super::{Again, Generation, Rules, fill, text};
use super::{bootstrap, check_conditions, printed};

const LAST_PRECEDENCE: i64 = 10_000;
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// The rules of flow schemas.
pub(crate) const fn rules() -> Rules {
    Rules {
        default: |schema| {
            fill::object(schema, "status");
            if let Some(spec) = fill::object(schema, "spec") {
                fill::zero(spec, "matchingPrecedence", 1000);
            }
        },
        prepare_create: |schema| fill::set(schema, "status", json!({})),
        generation: Generation::Content,
        again: Again::Object,
        change_again: false,
        status_change_again: false,
        validate: |schema| Errors::of(|errors| check(&At::root(schema), errors)),
        validate_status: |new, _| Errors::of(|errors| check_conditions(&At::root(new).get("status"), errors)),
        ..Rules::none()
    }
}

fn check(schema: &At<'_>, errors: &mut Errors) {
    let (name, spec) = (schema.dig(&["metadata", "name"]).text(), schema.get("spec"));
    check_precedence(name, &spec.get("matchingPrecedence"), errors);
    let method = spec.get("distinguisherMethod");
    let kind = method.get("type");
    if method.is_set() && !["ByNamespace", "ByUser"].contains(&kind.text()) {
        let value = json!({"Type": kind.text()});
        errors.push(FieldError::not_supported(&kind.path, value, ["ByNamespace", "ByUser"]));
    }
    let level = spec.dig(&["priorityLevelConfiguration", "name"]);
    if level.is_empty() {
        errors.required(&level, "must reference a priority level");
    }
    errors.maybe_text(&level, text::subdomain);
    for rule in spec.get("rules").items() {
        check_rule(&rule, errors);
    }
    if bootstrap::mandatory_schema(name).is_some_and(|wanted| !same(&wanted, spec.value)) {
        let detail = format!("spec of '{name}' must equal the fixed value");
        let error = FieldError::invalid(&spec.path, Value::Null, detail);
        errors.push(error.printed(printed::schema(spec.value)));
    }
}

fn check_precedence(name: &str, at: &At<'_>, errors: &mut Errors) {
    let precedence = at.number().unwrap_or_default();
    if precedence <= 0 {
        errors.invalid(at, "must be a positive value");
    }
    if precedence > LAST_PRECEDENCE {
        errors.invalid(at, format!("must not be greater than {LAST_PRECEDENCE}"));
    }
    if precedence == 1 && name != "exempt" {
        errors.invalid(at, "only the schema named 'exempt' may have matchingPrecedence 1");
    }
}

fn check_rule(rule: &At<'_>, errors: &mut Errors) {
    let subjects = rule.get("subjects");
    if subjects.is_empty() {
        errors.required(&subjects, "subjects must contain at least one value");
    }
    for subject in subjects.items() {
        check_subject(&subject, errors);
    }
    let (resources, others) = (rule.get("resourceRules"), rule.get("nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        errors.required(rule, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    for resource in resources.items() {
        check_resources(&resource, errors);
    }
    for other in others.items() {
        check_verbs(&other.get("verbs"), errors);
        check_urls(&other.get("nonResourceURLs"), errors);
    }
}

/// The fields of a subject and the kinds that they belong to, in the order in which a foreign one is told.
const SUBJECTS: [(&str, &str); 3] =
    [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];

fn check_subject(subject: &At<'_>, errors: &mut Errors) {
    let kind = subject.get("kind");
    let Some((_, own)) = SUBJECTS.iter().find(|(known, _)| *known == kind.text()) else {
        errors.not_supported(&kind, &["Group", "ServiceAccount", "User"]);
        return;
    };
    let place = subject.get(own);
    if !place.is_set() {
        errors.required(&place, &format!("{own} is required when subject kind is '{}'", kind.text()));
    } else if *own == "serviceAccount" {
        check_account(&place, errors);
    } else {
        errors.need(&place.get("name"));
    }
    for (foreign, field) in SUBJECTS {
        let place = subject.get(field);
        if foreign != kind.text() && place.is_set() {
            errors.forbidden(&place, format!("{field} is forbidden when subject kind is not '{foreign}'"));
        }
    }
}

fn check_account(account: &At<'_>, errors: &mut Errors) {
    let (name, namespace) = (account.get("name"), account.get("namespace"));
    if name.text() != "*" {
        errors.need_text(&name, text::subdomain);
    }
    if namespace.is_empty() {
        errors.required(&namespace, "must specify namespace for service account");
    }
    errors.maybe_text(&namespace, text::label);
}

fn check_resources(rule: &At<'_>, errors: &mut Errors) {
    check_verbs(&rule.get("verbs"), errors);
    for (field, one, many) in
        [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")]
    {
        let list = rule.get(field);
        if list.is_empty() {
            errors.required(&list, &format!("resource rules must supply at least one {one}"));
        } else {
            check_star_alone(&list, many, errors);
        }
    }
    let namespaces = rule.get("namespaces");
    if namespaces.is_empty() && !rule.get("clusterScope").is_true() {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.required(&namespaces, detail);
    } else if has_star(&namespaces) {
        check_star_alone(&namespaces, "namespaces", errors);
    } else {
        for namespace in namespaces.items() {
            for message in text::label(namespace.text()) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {message}");
                errors.invalid_text(&namespace, detail);
            }
        }
    }
}

fn check_verbs(verbs: &At<'_>, errors: &mut Errors) {
    if verbs.is_empty() {
        errors.required(verbs, "verbs must contain at least one value");
    } else if has_star(verbs) {
        check_star_alone(verbs, "verbs", errors);
    } else if verbs.items().any(|verb| !VERBS.contains(&verb.text())) {
        errors.push(FieldError::not_supported(&verbs.path, verbs.value.clone(), VERBS));
    }
}

fn check_urls(urls: &At<'_>, errors: &mut Errors) {
    if urls.is_empty() {
        errors.required(urls, "nonResourceURLs must contain at least one value");
    } else if has_star(urls) {
        check_star_alone(urls, "non-resource URLs", errors);
    } else {
        for url in urls.items() {
            if let Some(detail) = wrong_with_url(url.text()) {
                errors.invalid_text(&url, detail);
            }
        }
    }
}

fn wrong_with_url(url: &str) -> Option<&'static str> {
    let stars = url.matches('*').count();
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ if stars > 1 || (stars == 1 && !url.ends_with("/*")) => {
            Some("wildcard can only do suffix matching")
        }
        _ => None,
    }
}

fn has_star(list: &At<'_>) -> bool {
    list.items().any(|item| item.text() == "*")
}

fn check_star_alone(list: &At<'_>, others: &str, errors: &mut Errors) {
    if list.len() > 1 && has_star(list) {
        errors.invalid(list, format!("if '*' is present, must not specify other {others}"));
    }
}
