//! Webhooks and admission policies.

use serde_json::Value;

use super::age::age;
use super::column::{NAME, integer, text as column};
use super::printer::Printer;
use super::value::{at, cells, count, items, joined, text};

/// Prints webhook configurations of both sorts.
pub const WEBHOOKS: Printer =
    Printer::new(&[NAME, integer("Webhooks"), column("Age")], |configuration, now| {
        cells![
            text(configuration, "/metadata/name"),
            count(configuration, "/webhooks"),
            age(configuration, now),
        ]
    });

/// Prints mutating admission policies.
pub const MUTATING_POLICIES: Printer =
    Printer::new(&[NAME, integer("Mutations"), column("ParamKind"), column("Age")], |policy, now| {
        cells![
            text(policy, "/metadata/name"),
            count(policy, "/spec/mutations"),
            param_kind(policy),
            age(policy, now),
        ]
    });

/// Prints validating admission policies.
pub const VALIDATING_POLICIES: Printer =
    Printer::new(&[NAME, integer("Validations"), column("ParamKind"), column("Age")], |policy, now| {
        cells![
            text(policy, "/metadata/name"),
            count(policy, "/spec/validations"),
            param_kind(policy),
            age(policy, now),
        ]
    });

/// Prints bindings of both sorts of policies.
pub const BINDINGS: Printer =
    Printer::new(&[NAME, column("PolicyName"), column("ParamRef"), column("Age")], |binding, now| {
        cells![
            text(binding, "/metadata/name"),
            text(binding, "/spec/policyName"),
            param(binding),
            age(binding, now),
        ]
    });

fn param_kind(policy: &Value) -> String {
    at(policy, "/spec/paramKind")
        .map_or("<unset>".to_owned(), |kind| format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind")))
}

/// What a binding takes its parameters from: an object, or those that a selector selects (as Go prints it).
fn param(binding: &Value) -> String {
    let reference = binding.pointer("/spec/paramRef").unwrap_or(&Value::Null);
    match (text(reference, "/namespace"), text(reference, "/name"), at(reference, "/selector")) {
        (_, "", None) => "<unset>".to_owned(),
        (_, "", Some(selector)) => go_selector(selector),
        ("", name, _) => format!("*/{name}"),
        (namespace, name, _) => format!("{namespace}/{name}"),
    }
}

fn go_selector(selector: &Value) -> String {
    let labels = at(selector, "/matchLabels").and_then(Value::as_object);
    let labels: String = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()))
        .collect();
    let expressions: String = items(selector, "/matchExpressions")
        .iter()
        .map(|one| {
            let values = joined(one, "/values", " ");
            let (key, operator) = (text(one, "/key"), text(one, "/operator"));
            format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better than references to them")]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn param_of(reference: Value) -> Value {
        let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "paramRef": reference}});
        (BINDINGS.cells)(&binding, Timestamp::UNIX_EPOCH).remove(2)
    }

    #[test]
    fn a_binding_tells_where_its_parameters_are() {
        assert_eq!(param_of(Value::Null), "<unset>");
        assert_eq!(param_of(json!({"name": "n"})), "*/n");
        assert_eq!(param_of(json!({"name": "n", "namespace": "s"})), "s/n");
        assert_eq!(
            param_of(json!({"selector": {"matchLabels": {"a": "b"}}})),
            "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}"
        );
    }

    #[test]
    fn a_policy_counts_its_rules() {
        let spec = json!({"validations": [{}, {}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}});
        let policy = json!({"metadata": {"name": "p"}, "spec": spec});
        assert_eq!(
            (VALIDATING_POLICIES.cells)(&policy, Timestamp::UNIX_EPOCH),
            cells!["p", 2, "v1/ConfigMap", "<unknown>"]
        );
    }
}
