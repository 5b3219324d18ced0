//! Scopes: which objects a quota is about.

use serde_json::Value;

/// One scope of a quota; all of them have to hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Requirement {
    /// `scopeName`.
    pub name: String,
    /// How the values are meant.
    pub operator: Operator,
    /// `values`.
    pub values: Vec<String>,
}

/// How the values of a scope are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Requirement {
    /// Whether an object that has this value (or none) is meant.
    pub(crate) fn matches(&self, value: Option<&str>) -> bool {
        let listed = value.is_some_and(|value| self.values.iter().any(|one| one == value));
        match self.operator {
            Operator::In => listed,
            Operator::NotIn => !listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

/// The scopes of a quota: those of `spec.scopes` (which must exist) and those of `spec.scopeSelector`.
pub(crate) fn of_quota(quota: &Value) -> Vec<Requirement> {
    let spec = &quota["spec"];
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let plain = texts(&spec["scopes"]).into_iter().map(|name| Requirement {
        name,
        operator: Operator::Exists,
        values: Vec::new(),
    });
    let selected =
        spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten().map(|item| Requirement {
            name: item["scopeName"].as_str().unwrap_or_default().to_owned(),
            operator: match item["operator"].as_str() {
                Some("In") => Operator::In,
                Some("NotIn") => Operator::NotIn,
                Some("DoesNotExist") => Operator::DoesNotExist,
                _ => Operator::Exists,
            },
            values: texts(&item["values"]),
        });
    plain.chain(selected).collect()
}
