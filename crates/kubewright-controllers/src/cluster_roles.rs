//! The cluster role aggregator: a role that is made of others has their rules
//! (`pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`).

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::api::ObjectMeta;
use kubewright_identity::authz::aggregation::aggregate;
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The roles that are made of others.
type Aggregating = Arc<Mutex<BTreeSet<Key>>>;

/// The controller. Any role may be a part of any other: each event leads to all that are made of others.
#[must_use]
pub(crate) fn controller() -> Controller {
    let aggregating = Aggregating::default();
    let known = Arc::clone(&aggregating);
    Controller::new("clusterrole-aggregation-controller", Aggregator { aggregating }).watches(
        move |role: &ClusterRole| {
            let mut known = known.lock();
            if role.aggregation_rule.is_some() {
                known.insert(Key::of(role));
            }
            known.iter().cloned().collect()
        },
    )
}

struct Aggregator {
    aggregating: Aggregating,
}

impl Reconciler for Aggregator {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let found = ctx.get::<ClusterRole>(key).filter(|role| role.aggregation_rule.is_some());
        let Some(role) = found else {
            self.aggregating.lock().remove(key);
            return Ok(Outcome::Done);
        };
        let Some(rules) = plan(&role, &ctx.list::<ClusterRole>(None)) else { return Ok(Outcome::Done) };
        ctx.apply(&applied(key, rules)).await?;
        Ok(Outcome::Done)
    }
}

/// What is applied to a role that should have these rules. Where there are none, nothing is: rules that somebody else wrote stay
/// (`applyClusterRoles`).
fn applied(key: &Key, rules: Vec<PolicyRule>) -> ClusterRole {
    let metadata = ObjectMeta { name: Some(key.name.clone()), ..ObjectMeta::default() };
    ClusterRole { metadata, rules: (!rules.is_empty()).then_some(rules), ..ClusterRole::default() }
}

/// The rules that `role` should have, when it has others.
fn plan(role: &ClusterRole, all: &[Arc<ClusterRole>]) -> Option<Vec<PolicyRule>> {
    let all: Vec<Value> = all.iter().map(|role| json!(**role)).collect();
    let rules = json!(aggregate(&json!(role), &all)?);
    let rules: Vec<PolicyRule> = kubewright_objects::from_value(rules).ok()?;
    (rules != role.rules.clone().unwrap_or_default()).then_some(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(value: Value) -> Arc<ClusterRole> {
        Arc::new(kubewright_objects::from_value(value).expect("a role"))
    }

    #[test]
    fn only_other_rules_than_it_has_are_written() {
        let part = role(json!({"metadata": {"name": "part", "labels": {"a": "b"}},
            "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}));
        let whole = json!({"metadata": {"name": "whole"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}, "rules": []});
        let empty = role(whole.clone());
        let rules = plan(&empty, &[Arc::clone(&part), Arc::clone(&empty)]).expect("rules");
        let mut made = whole;
        made["rules"] = json!(rules);
        assert_eq!(plan(&role(made), &[part]), None);
        assert_eq!(plan(&empty, &[]), None);
    }

    #[test]
    fn where_no_role_is_meant_no_rules_are_applied() {
        let key = Key::cluster_scoped("whole");
        assert_eq!(json!(applied(&key, Vec::new())).get("rules"), None);
        let rule = PolicyRule { verbs: vec!["get".into()], ..PolicyRule::default() };
        assert_eq!(applied(&key, vec![rule.clone()]).rules, Some(vec![rule]));
    }
}
