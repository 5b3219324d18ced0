//! APIServices: which API server serves which version of a group (`k8s.io/kube-aggregator/pkg/apis/apiregistration`,
//! `pkg/registry/apiservice`).

pub mod availability;
pub mod local;
mod registration;

pub use registration::{ApiService, Backend};

use serde_json::{Value, json};

use super::at::At;
use super::errors::Errors;
use super::{Again, Finalizers, NameRule, Rules, fill, text};

/// The port of a service, where none is given.
const HTTPS: u16 = 443;
const MOST_GROUP_PRIORITY: i64 = 20_000;
const MOST_VERSION_PRIORITY: i64 = 1000;

/// The rules of APIServices.
pub(crate) const fn rules() -> Rules {
    Rules {
        default: |object| {
            fill::object(object, "status");
            if let Some(service) =
                fill::object(object, "spec").and_then(|spec| fill::present(spec, "service"))
            {
                fill::absent(service, "port", HTTPS);
            }
        },
        prepare_create: |object| {
            let status = match object.pointer("/spec/service").is_none_or(Value::is_null) {
                // It is as old as the object.
                true => {
                    json!({"conditions": [availability::local(&object["metadata"]["creationTimestamp"])]})
                }
                false => json!({}),
            };
            fill::set(object, "status", status);
        },
        name: NameRule::PathSegment,
        finalizers: Finalizers::Syntax,
        again: Again::Object,
        validate: |object| Errors::of(|errors| check(&At::root(object), errors)),
        validate_status: |new, _| {
            Errors::of(|errors| {
                for condition in At::root(new).dig(&["status", "conditions"]).items() {
                    let status = condition.get("status");
                    if !["True", "False", "Unknown"].contains(&status.text()) {
                        errors.not_supported(&status, &["True", "False", "Unknown"]);
                    }
                }
            })
        },
        ..Rules::none()
    }
}

/// `ValidateAPIService`.
fn check(object: &At<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let (group, version) = (spec.get("group"), spec.get("version"));
    let wanted = format!("{}.{}", version.text(), group.text());
    for name in ["generateName", "name"].map(|field| object.dig(&["metadata", field])) {
        if !name.is_empty() && text::path_segment(name.text()).is_empty() && name.text() != wanted {
            errors.invalid(&name, format!("must be `spec.version+\".\"+spec.group`: {wanted:?}"));
        }
    }
    if group.is_empty() && version.text() != "v1" {
        errors.required(&group, "only v1 may have an empty group and it better be legacy kube");
    }
    errors.maybe_text(&group, text::subdomain);
    errors.text(&version, text::label_1035);
    for (field, most) in
        [("groupPriorityMinimum", MOST_GROUP_PRIORITY), ("versionPriority", MOST_VERSION_PRIORITY)]
    {
        let place = spec.get(field);
        let number = place.number().unwrap_or_default();
        if number <= 0 || number > most {
            errors.invalid_as(&place, number, format!("must be positive and less than {most}"));
        }
    }
    let (service, bundle, insecure) =
        (spec.get("service"), spec.get("caBundle"), spec.get("insecureSkipTLSVerify"));
    if !service.is_set() {
        if !bundle.is_empty() {
            let length = registration::bundle(spec.value).len();
            errors.invalid_as(
                &bundle,
                format!("{length} bytes"),
                "local APIServices may not have a caBundle",
            );
        }
        if insecure.is_true() {
            errors.invalid(&insecure, "local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    }
    for field in ["namespace", "name"] {
        errors.need(&service.get(field));
    }
    let port = service.get("port");
    let number = port.number().unwrap_or_default();
    if !(1..=65535).contains(&number) {
        errors.invalid_as(&port, number, "port is not valid: must be between 1 and 65535, inclusive");
    }
    if insecure.is_true() && !bundle.is_empty() {
        errors.invalid(&insecure, "may not be true if caBundle is present");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(group: &str, version: &str) -> Value {
        json!({
            "metadata": {"name": format!("{version}.{group}")},
            "spec": {"group": group, "version": version, "groupPriorityMinimum": 1, "versionPriority": 1}
        })
    }

    fn found(object: &Value) -> Vec<String> {
        rules().errors_on_create(object, false).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_finalizer_needs_no_domain() {
        let mut object = local("example.com", "v1");
        object["metadata"]["finalizers"] = json!(["a", "b c"]);
        let said = found(&object);
        assert!(
            said.len() == 1 && said[0].starts_with("metadata.finalizers: Invalid value: \"b c\""),
            "{said:?}"
        );
    }

    #[test]
    fn the_name_is_version_and_group() {
        assert_eq!(found(&local("example.com", "v1")), Vec::<String>::new());
        assert_eq!(found(&local("", "v1")), Vec::<String>::new());
        let mut object = local("example.com", "v1");
        object["metadata"]["name"] = "other".into();
        let why = "metadata.name: Invalid value: \"other\": must be `spec.version+\".\"+spec.group`: \"v1.example.com\"";
        assert_eq!(found(&object), [why]);
    }

    #[test]
    fn priorities_have_bounds_and_a_group_is_needed() {
        let mut object = local("", "v2");
        object["spec"]["groupPriorityMinimum"] = 20_001.into();
        object["spec"]["versionPriority"] = 0.into();
        assert_eq!(
            found(&object),
            [
                "spec.group: Required value: only v1 may have an empty group and it better be legacy kube",
                "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000",
                "spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
            ]
        );
    }

    #[test]
    fn only_what_is_behind_a_service_has_certificates() {
        let mut object = local("example.com", "v1");
        object["spec"]["caBundle"] = "YWJj".into();
        object["spec"]["insecureSkipTLSVerify"] = true.into();
        assert_eq!(
            found(&object),
            [
                "spec.caBundle: Invalid value: \"3 bytes\": local APIServices may not have a caBundle",
                "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
            ]
        );
        object["spec"]["service"] = json!({"port": 70_000});
        assert_eq!(
            found(&object),
            [
                "spec.service.namespace: Required value",
                "spec.service.name: Required value",
                "spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive",
                "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
            ]
        );
    }

    #[test]
    fn a_local_one_is_available_from_the_beginning() {
        let mut object = local("example.com", "v1");
        object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        (rules().prepare_create)(&mut object);
        let condition = &object["status"]["conditions"][0];
        assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("Local")));
        assert_eq!(condition["lastTransitionTime"], "2026-01-01T00:00:00Z");
        object["spec"]["service"] = json!({"namespace": "a", "name": "b"});
        (rules().prepare_create)(&mut object);
        assert_eq!(object["status"], json!({}));
        (rules().default)(&mut object);
        assert_eq!(object["spec"]["service"]["port"], 443);
    }
}
