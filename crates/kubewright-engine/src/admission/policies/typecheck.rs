//! What is wrong with the expressions of a validating policy when they are held against the types of the objects that it is
//! about. That does not stop the policy; its status tells it (`.../policy/validating/typechecking.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_cel::DeclType;
use kubewright_kinds::expressions::{Compiler, Names};
use kubewright_kinds::{Kind, Kinds};
use serde_json::{Value, json};

use super::params::ParamKind;
use super::types;

/// The most types that a policy is checked against.
const MAX_TYPES: usize = 10;

/// `status.typeChecking` of a policy.
pub(crate) fn type_checking(kinds: &Kinds, policy: &Value) -> Value {
    let spec = &policy["spec"];
    let checks = checks(kinds, spec);
    let mut warnings = Vec::new();
    for (index, validation) in spec["validations"].as_array().into_iter().flatten().enumerate() {
        for field in ["expression", "messageExpression"] {
            let text = validation[field].as_str().unwrap_or_default();
            let found: Vec<String> = checks.iter().filter_map(|check| check.complaint(text)).collect();
            if !text.is_empty() && !found.is_empty() {
                let place = format!("spec.validations[{index}].{field}");
                warnings.push(json!({"fieldRef": place, "warning": found.join("\n")}));
            }
        }
    }
    if warnings.is_empty() { json!({}) } else { json!({"expressionWarnings": warnings}) }
}

/// The check against one type.
struct Check {
    /// Such as `apps/v1, Kind=Deployment`.
    of: String,
    compiler: Compiler,
    names: Names,
}

impl Check {
    fn complaint(&self, expression: &str) -> Option<String> {
        let why = self.compiler.check(expression, self.names).err()?;
        Some(format!("{}: {why}\n", self.of))
    }
}

fn checks(kinds: &Kinds, spec: &Value) -> Vec<Check> {
    let param_kind = ParamKind::read(&spec["paramKind"]);
    let names = Names::of_condition(param_kind.is_some());
    let params = param_kind.and_then(|kind| kind.find(kinds));
    let params = params.map_or_else(DeclType::dynamic, |kind| types::of_kind(kinds, &kind));
    let checks = types_of(kinds, spec).into_iter().map(|kind| {
        let mut compiler = Compiler::with_types(types::of_kind(kinds, &kind), params.clone());
        for variable in spec["variables"].as_array().into_iter().flatten() {
            let text = |field: &str| variable[field].as_str().unwrap_or_default();
            // One that does not compile can be of any type.
            let _ = compiler.add_variable(text("name"), text("expression"), names);
        }
        Check { of: format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind), compiler, names }
    });
    checks.collect()
}

/// The kinds that the rules name, without those that name them by a wildcard.
fn types_of(kinds: &Kinds, spec: &Value) -> Vec<Arc<Kind>> {
    let mut found = BTreeMap::new();
    for rule in spec["matchConstraints"]["resourceRules"].as_array().into_iter().flatten() {
        let texts = |field: &str| -> Vec<&str> {
            rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let (groups, versions) = (texts("apiGroups"), texts("apiVersions"));
        if groups.iter().chain(&versions).any(|text| text.contains('*')) {
            continue;
        }
        for (group, version) in groups.iter().flat_map(|group| versions.iter().map(move |one| (group, one))) {
            for resource in texts("resources") {
                if let Some(kind) = kinds.get(group, version, resource) {
                    let key = (kind.group.clone(), kind.version.clone(), kind.kind.clone());
                    found.insert(key, Arc::clone(kind));
                }
                if found.len() == MAX_TYPES {
                    return found.into_values().collect();
                }
            }
        }
    }
    found.into_values().collect()
}
