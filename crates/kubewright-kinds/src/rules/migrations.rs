//! Migrations to the storage version (`pkg/apis/storagemigration/validation`, `pkg/registry/storagemigration`).

use kubewright_meta::FieldError;
use serde_json::{Value, json};

use super::at::At;
use super::errors::{Errors, IMMUTABLE};
use super::{Again, Rules, conditions, fill, text};

/// The rules of storage version migrations.
pub(crate) const fn rules() -> Rules {
    Rules {
        prepare_create: |migration| fill::set(migration, "status", json!({})),
        again: Again::Object,
        validate: |migration| {
            Errors::of(|errors| check(&At::root(migration).dig(&["spec", "resource"]), errors))
        },
        validate_update: |new, old| {
            let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
            if new.same(&old) {
                return Vec::new();
            }
            let resource = new.get("resource");
            let part = |field: &str| Value::from(resource.get(field).text());
            let printed =
                format!("{{\"Resource\":{{\"group\":{},\"resource\":{}}}}}", part("group"), part("resource"));
            vec![FieldError::invalid(&new.path, Value::Null, IMMUTABLE).printed(printed)]
        },
        validate_status: |new, old| Errors::of(|errors| check_status(&At::root(new), &At::root(old), errors)),
        ..Rules::none()
    }
}

fn check(resource: &At<'_>, errors: &mut Errors) {
    let (name, group) = (resource.get("resource"), resource.get("group"));
    if name.is_empty() {
        errors.required(&name, "resource is required to be set");
    }
    for (at, rule) in [(name, text::label_1035 as fn(&str) -> Vec<String>), (group, text::subdomain)] {
        let wrong = if at.is_empty() { Vec::new() } else { rule(at.text()) };
        if !wrong.is_empty() {
            errors.invalid(&at, wrong.join(","));
        }
    }
}

fn check_status(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (status, before) = (new.get("status"), old.get("status"));
    let version = status.get("resourceVersion");
    if !version.is_empty() && !is_version(version.text()) {
        errors.invalid(&version, format!("resource version is not well formed: {}", version.text()));
    }
    let list = status.get("conditions");
    conditions::check(&list, errors);
    let then = before.get("resourceVersion");
    if !then.is_empty() && then.text() != version.text() {
        errors.invalid_text(&version, IMMUTABLE);
    }
    let mut refuse = |why: &str| {
        let error = FieldError::invalid(&list.path, Value::Null, why);
        errors.push(error.printed(conditions::printed(&list)));
    };
    let [succeeded, failed] = ["Succeeded", "Failed"].map(|kind| conditions::is_true(new, kind));
    if succeeded && failed {
        refuse("Both success and failed conditions cannot be true at the same time");
    }
    if conditions::is_true(old, "Succeeded") && !succeeded {
        refuse("Success condition cannot be set to false once it is true");
    }
    if conditions::is_true(old, "Failed") && !failed {
        refuse("Failed condition cannot be set to false once it is true");
    }
}

/// Whether it is a positive number as versions are written, of whatever length.
fn is_version(text: &str) -> bool {
    !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migration(status: &Value) -> Value {
        json!({
            "metadata": {"name": "m"},
            "spec": {"resource": {"group": "g.io", "resource": "things"}},
            "status": status,
        })
    }

    fn said(new: &Value, old: &Value) -> Vec<String> {
        let errors = rules().errors_on_status(&migration(new), &migration(old), false);
        errors.iter().map(ToString::to_string).collect()
    }

    fn condition(kind: &str) -> Value {
        json!({"type": kind, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn a_resource_is_named_and_stays() {
        let good = migration(&json!({}));
        let refused = |object: &Value| -> Vec<String> {
            rules().errors_on_create(object, false).iter().map(ToString::to_string).collect()
        };
        assert_eq!(refused(&good), Vec::<String>::new());
        let mut bad = good.clone();
        bad["spec"]["resource"] = json!({"group": "", "resource": ""});
        assert_eq!(refused(&bad), ["spec.resource.resource: Required value: resource is required to be set"]);
        bad["spec"]["resource"] = json!({"group": "A", "resource": "1"});
        let told = refused(&bad);
        assert!(
            told[0].starts_with("spec.resource.resource: Invalid value: \"1\": a DNS-1035 label"),
            "{told:?}"
        );
        assert!(
            told[1].starts_with("spec.resource.group: Invalid value: \"A\": a lowercase RFC 1123"),
            "{told:?}"
        );
        let mut other = good.clone();
        other["spec"]["resource"]["resource"] = json!("others");
        let told = rules().errors_on_update(&other, &good, false);
        assert_eq!(
            told.last().map(ToString::to_string).as_deref(),
            Some(
                "spec: Invalid value: {\"Resource\":{\"group\":\"g.io\",\"resource\":\"others\"}}: field is immutable"
            )
        );
    }

    #[test]
    fn a_status_goes_forward_alone() {
        let empty = json!({});
        let done = json!({"conditions": [condition("Succeeded")], "resourceVersion": "12"});
        assert_eq!(said(&done, &empty), Vec::<String>::new());
        assert_eq!(
            said(&json!({"resourceVersion": "013"}), &empty),
            ["status.resourceVersion: Invalid value: \"013\": resource version is not well formed: 013"]
        );
        assert_eq!(
            said(&json!({"resourceVersion": "13"}), &json!({"resourceVersion": "12"})),
            ["status.resourceVersion: Invalid value: \"13\": field is immutable"]
        );
        assert_eq!(
            said(&json!({"resourceVersion": "12"}), &done),
            [
                "status.conditions: Invalid value: null: Success condition cannot be set to false once it is true"
            ]
        );
        let both = json!({"conditions": [condition("Succeeded"), condition("Failed")]});
        let one = |kind: &str| {
            format!(
                "{{\"type\":\"{kind}\",\"status\":\"True\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\",\"reason\":\"R\",\"message\":\"m\"}}"
            )
        };
        assert_eq!(
            said(&both, &empty),
            [format!(
                "status.conditions: Invalid value: [{},{}]: Both success and failed conditions cannot be true at the same time",
                one("Succeeded"),
                one("Failed")
            )]
        );
    }

    #[test]
    fn a_condition_is_whole() {
        let half = json!({"conditions": [{"type": "Running", "status": "Maybe", "reason": "a b"}]});
        assert_eq!(
            said(&half, &json!({})),
            [
                "status.conditions[0].status: Unsupported value: \"Maybe\": supported values: \"False\", \"True\", \"Unknown\"",
                "status.conditions[0].lastTransitionTime: Required value",
                "status.conditions[0].reason: Invalid value: \"a b\": a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
            ]
        );
        let twice = json!({"conditions": [condition("Running"), condition("Running")]});
        assert_eq!(said(&twice, &json!({})), ["status.conditions[1]: Duplicate value: \"Running\""]);
    }
}
