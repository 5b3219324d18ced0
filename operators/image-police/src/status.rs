//! What a list's status says.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::{
    Object,
    conditions::{self, NewCondition, Status},
};

use crate::{
    DenyBy, Enforcement, WhiteList, WhiteListStatus,
    plan::Plan,
    regime::{Regime, Suspended},
    rules::Rules,
};

/// How many violations, and how many exemptions, a status tells one by one.
pub(crate) const TOLD: usize = 50;

/// The status of `list` after `plan` was made, before it is carried out.
pub(crate) fn status(
    list: &WhiteList,
    rules: &Result<Rules, Vec<String>>,
    regime: &Regime,
    plan: &Plan,
    capped: bool,
    now: Timestamp,
) -> WhiteListStatus {
    let before = list.status.clone().unwrap_or_default();
    let mut conditions = before.conditions;
    for wanted in [accepted(rules), enforced(regime, capped), compliant(regime, plan)] {
        conditions::set(&mut conditions, &wanted.of(list), now);
    }
    WhiteListStatus {
        observed_generation: list.metadata.generation,
        violation_count: i64::try_from(plan.violations.len()).unwrap_or(i64::MAX),
        violations: plan.violations.iter().take(TOLD).cloned().collect(),
        exempt: plan.exempt.iter().take(TOLD).cloned().collect(),
        actions: before.actions,
        last_action: before.last_action,
        conditions,
    }
}

/// Whether the rules of a list can be understood, as a condition of `of`.
pub(crate) fn accept<K: Object>(
    conditions: &mut Vec<Condition>,
    rules: &Result<Rules, Vec<String>>,
    of: &K,
    now: Timestamp,
) {
    conditions::set(conditions, &accepted(rules).of(of), now);
}

fn accepted(rules: &Result<Rules, Vec<String>>) -> NewCondition {
    match rules {
        Ok(_) => NewCondition::new("Accepted", Status::True, "RulesUnderstood"),
        Err(mistakes) => {
            NewCondition::new("Accepted", Status::False, "InvalidRules").message(mistakes.join("; "))
        }
    }
}

fn enforced(regime: &Regime, capped: bool) -> NewCondition {
    let no =
        |reason: &str, message: &str| NewCondition::new("Enforced", Status::False, reason).message(message);
    match (&regime.suspended, regime.enforcement) {
        (Some(Suspended::SystemNamespace), _) => no(
            "SystemNamespace",
            "lists hold in this namespace only with spec.enforceInSystemNamespace: nothing is judged",
        ),
        (Some(Suspended::InvalidRules), _) => {
            no("InvalidRules", "a list of this namespace cannot be understood: violations are only reported")
        }
        (None, Enforcement::Audit) => no("Audit", "violations are only reported"),
        (None, Enforcement::Deny) if regime.deny_by == DenyBy::Policy && !regime.fits_a_policy() => no(
            "VersionsNeedTheWebhook",
            "a policy cannot tell spec.images[].versions: set spec.denyBy to Webhook",
        ),
        (None, _) if capped => no(
            "DeletionCapReached",
            "more would be deleted than may be in a minute: violations are only reported",
        ),
        (None, enforcement) => NewCondition::new("Enforced", Status::True, format!("{enforcement:?}")),
    }
}

fn compliant(regime: &Regime, plan: &Plan) -> NewCondition {
    if !regime.judges_at_all() {
        return NewCondition::new("Compliant", Status::Unknown, "NotJudged");
    }
    match plan.violations.len() {
        0 => NewCondition::new("Compliant", Status::True, "NoViolations"),
        count => NewCondition::new("Compliant", Status::False, "Violations")
            .message(format!("{count} uses of images that no list allows")),
    }
}
