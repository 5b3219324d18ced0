//! The small groups: leases, priority classes, runtime classes, service accounts and certificate requests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::at::At;
use super::errors::Errors;
use super::pods::check_tolerations;
use super::{Again, Finalizers, Generation, NameRule, Rules, fill, resources, selector, text};
use crate::FieldError;
use crate::authn::User;

/// The rules of leases (`pkg/apis/coordination/validation`).
pub(super) fn leases() -> Rules {
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
pub(super) fn priority_classes() -> Rules {
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
pub(super) fn runtime_classes() -> Rules {
    Rules {
        default: |class| {
            if let Some(overhead) = fill::present(class, "overhead") {
                fill::canonical_map(overhead, "podFixed");
            }
        },
        again: Again::Object,
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
pub(super) fn service_accounts() -> Rules {
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

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The rules of certificate signing requests (`pkg/apis/certificates/validation`). Who asks is filled in by the engine;
/// the request itself is read by the signer.
pub(super) fn signing_requests() -> Rules {
    Rules {
        default: |request| {
            fill::object(request, "status");
        },
        prepare_create: |request| {
            fill::set(request, "status", json!({}));
        },
        author: |request, user| {
            if let Some(spec) = fill::object(request, "spec") {
                sign(spec, user);
            }
        },
        prepare_update: |new, old| fill::keep(new, old, "spec"),
        name: NameRule::PathSegment,
        again: Again::Object,
        validate: |request| Errors::of(|errors| check_request(&At::root(request), errors)),
        validate_status: |new, old| {
            let mut found = Errors::of(|errors| check_conditions(&At::root(new), errors));
            found.extend(check_request_change(new, old));
            found
        },
        ..Rules::none()
    }
}

/// Writes down who asks, whatever the client said.
fn sign(spec: &mut Value, user: &User) {
    for (field, value) in [
        ("username", json!(user.name)),
        ("uid", json!(user.uid)),
        ("groups", json!(user.groups)),
        ("extra", json!(user.extra)),
    ] {
        if At::root(&value).is_empty() {
            fill::remove(spec, field);
        } else {
            fill::set(spec, field, value);
        }
    }
}

fn check_request(request: &At<'_>, errors: &mut Errors) {
    let spec = request.get("spec");
    check_csr(&spec.get("request"), errors);
    let usages = spec.get("usages");
    errors.need(&usages);
    let mut seen = Vec::new();
    for usage in usages.items() {
        errors.one_of(&usage, &USAGES);
        if seen.contains(&usage.text()) {
            errors.duplicate(&usage);
        }
        seen.push(usage.text());
    }
    check_signer(&spec.get("signerName"), errors);
    let lifetime = spec.get("expirationSeconds");
    if lifetime.number().is_some_and(|seconds| seconds < 600) {
        errors.invalid(&lifetime, "may not specify a duration less than 600 seconds (10 minutes)");
    }
    check_conditions(request, errors);
}

/// A request in PEM. (Its signature is looked at by nobody here.)
fn check_csr(request: &At<'_>, errors: &mut Errors) {
    let bytes = STANDARD.decode(request.text()).unwrap_or_default();
    if !pem::parse(&bytes).is_ok_and(|block| block.tag() == "CERTIFICATE REQUEST") {
        errors.invalid(request, "PEM block type must be CERTIFICATE REQUEST");
    }
}

/// `<domain of two labels or more>/<path>` (`ValidateSignerName`).
fn check_signer(signer: &At<'_>, errors: &mut Errors) {
    if !errors.need(signer) {
        return;
    }
    let name = signer.text();
    let Some((domain, path)) = name.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.invalid(signer, detail);
        return;
    };
    for label in domain.split('.') {
        for message in text::label(label) {
            errors.invalid_as(signer, domain, format!("validating label {label:?}: {message}"));
        }
    }
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.invalid_as(signer, domain, detail);
    }
    for part in path.split('.') {
        for message in text::subdomain(part) {
            errors.invalid_as(signer, path, format!("validating label {part:?}: {message}"));
        }
    }
    if name == "kubernetes.io/legacy-unknown" {
        errors.invalid(signer, "the legacy signerName is not allowed via this API version");
    }
}

/// The conditions: approval and denial exclude each other.
fn check_conditions(request: &At<'_>, errors: &mut Errors) {
    let conditions = request.dig(&["status", "conditions"]);
    errors.unique(&conditions, "type");
    let mut decided: Option<&str> = None;
    for condition in conditions.items() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        errors.need(&kind);
        let allowed: &[&str] = if matches!(kind.text(), "Approved" | "Denied" | "Failed") {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        errors.need_one_of(&status, allowed);
        if matches!(kind.text(), "Approved" | "Denied") {
            if decided.is_some_and(|other| other != kind.text()) {
                let place = At { path: conditions.path.clone(), ..kind.clone() };
                errors.invalid_text(&place, "Approved and Denied conditions are mutually exclusive");
            }
            decided = Some(kind.text());
        }
    }
}

/// What may not change in a request's status: decisions stay, and so does an issued certificate.
fn check_request_change(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let (new, old) = (At::root(new).get("status"), At::root(old).get("status"));
        for kind in ["Approved", "Denied", "Failed"] {
            let count = |status: &At<'_>| {
                status
                    .get("conditions")
                    .items()
                    .filter(|condition| condition.get("type").text() == kind)
                    .count()
            };
            if count(&new) < count(&old) {
                errors.forbidden(
                    &new.get("conditions"),
                    format!("updates may not remove a condition of type {kind:?}"),
                );
            }
        }
        let (now, then) = (new.get("certificate"), old.get("certificate"));
        if !then.is_empty() && now.text() != then.text() {
            errors.forbidden(&now, "updates may not modify existing certificate content");
        }
    })
}
