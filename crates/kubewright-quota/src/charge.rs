//! What a write adds to a quota, and whether that fits (`k8s.io/apiserver/pkg/admission/plugin/resourcequota`,
//! `CheckRequest`).

use jiff::Timestamp;
use serde_json::Value;

use super::evaluator::Evaluator;
use super::scope;
use kubewright_meta::resources::Resources;

/// The write that is charged for.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    /// Who counts it.
    pub evaluator: &'a Evaluator,
    /// The object as it will be.
    pub object: &'a Value,
    /// The object as it is; `None` for a new one.
    pub old: Option<&'a Value>,
    /// A write to the status is charged for, but never refused.
    pub always: bool,
    /// The time.
    pub now: Timestamp,
}

/// What a write means for one quota.
#[derive(Debug, PartialEq)]
pub enum Charge {
    /// Nothing.
    None,
    /// `status.used` becomes this.
    Used(Value),
}

impl Change<'_> {
    /// What the write means for `quota`.
    ///
    /// # Errors
    /// Why it does not fit, in Kubernetes' words.
    pub fn charge(&self, quota: &Value) -> Result<Charge, String> {
        let Some(limited) = self.limited(quota, self.object) else { return Ok(Charge::None) };
        let name = quota["metadata"]["name"].as_str().unwrap_or_default();
        let status = &quota["status"];
        let (hard, used) = (Resources::of(&status["hard"]), Resources::of(&status["used"]));
        let names: Vec<&str> = limited.iter().map(String::as_str).collect();
        self.evaluator
            .check_constraints(self.object, &names)
            .map_err(|why| format!("failed quota: {name}: {why}"))?;
        if names.iter().any(|name| used.get(name).is_none()) {
            return Err(format!("status unknown for quota: {name}, resources: {}", names.join(",")));
        }
        let usage = self.evaluator.usage(self.object, self.now);
        let negative: Vec<&str> =
            usage.iter().filter(|(_, amount)| amount.sign().is_lt()).map(|(name, _)| name).collect();
        if !negative.is_empty() {
            return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")));
        }
        let added = match self.old.filter(|old| self.limited(quota, old).is_some()) {
            Some(old) => usage.beyond(&self.evaluator.usage(old, self.now)),
            None => usage,
        };
        let added = added.without_zeros().only(&hard);
        if added.is_empty() {
            return Ok(Charge::None);
        }
        let total = used.clone().plus(&added);
        let exceeds = |name: &str| match (total.get(name), hard.get(name)) {
            (Some(total), Some(hard)) => total > hard,
            _ => false,
        };
        let exceeded = added.filter(|name, _| exceeds(name));
        if !exceeded.is_empty() && !self.always {
            let (used, hard) = (used.only(&exceeded), hard.only(&exceeded));
            return Err(format!(
                "exceeded quota: {name}, requested: {exceeded}, used: {used}, limited: {hard}"
            ));
        }
        Ok(Charge::Used(total.to_value()))
    }

    /// The names that the quota limits of what is counted here; `None` where it is about other objects.
    fn limited(&self, quota: &Value, object: &Value) -> Option<Vec<String>> {
        let names = quota["status"]["hard"].as_object()?.keys();
        let limited: Vec<String> = names.filter(|name| self.evaluator.matches_name(name)).cloned().collect();
        let meant = !limited.is_empty() && self.evaluator.is_in_scopes(&scope::of_quota(quota), object);
        meant.then_some(limited)
    }
}
