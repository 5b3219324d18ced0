//! What a Job's policies say of its pods (`pod_failure_policy.go` and `success_policy.go` in `pkg/controller/job`).

use k8s_openapi::api::batch::v1::{Job, PodFailurePolicy};
use k8s_openapi::api::batch::v1::{
    PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicy,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use kubewright_objects::optional;

use super::indexes::Indexes;

/// What the failure of a pod means for its Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It counts.
    Count,
    /// It does not count.
    Ignore,
    /// Its index has failed for good.
    FailIndex,
    /// The Job has failed, for this reason.
    FailJob(String),
}

impl Ruling {
    /// Whether the failure counts towards the limits.
    pub(super) fn counts(&self) -> bool {
        *self != Self::Ignore
    }
}

/// What the first rule that matches a failed pod says; without one, its failure counts.
pub(super) fn ruling(job: &Job, pod: &Pod) -> Ruling {
    let policy = job.spec.as_ref().and_then(|spec| spec.pod_failure_policy.as_ref());
    policy.map_or(Ruling::Count, |policy| of_policy(policy, pod))
}

fn of_policy(policy: &PodFailurePolicy, pod: &Pod) -> Ruling {
    for (at, rule) in policy.rules.iter().enumerate() {
        let Some(cause) = cause(rule, pod) else { continue };
        match rule.action.as_str() {
            "Ignore" => return Ruling::Ignore,
            "FailIndex" => return Ruling::FailIndex,
            "Count" => return Ruling::Count,
            "FailJob" => return Ruling::FailJob(format!("{cause} matching FailJob rule at index {at}")),
            _ => {}
        }
    }
    Ruling::Count
}

/// What makes a rule match, in words.
fn cause(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (namespace, name) = (text(&pod.metadata.namespace), text(&pod.metadata.name));
    if let Some(wanted) = &rule.on_exit_codes {
        let (container, code) = exited(pod, wanted)?;
        return Some(format!(
            "Container {container} for pod {namespace}/{name} failed with exit code {code}"
        ));
    }
    let patterns = rule.on_pod_conditions.as_deref()?;
    let matches = |has: &&PodCondition| {
        // An unset status stands for True.
        let status = |wanted| optional::<String>(wanted).map_or("True", String::as_str);
        patterns.iter().any(|wanted| wanted.type_ == has.type_ && status(&wanted.status) == has.status)
    };
    let condition = pod.status.as_ref()?.conditions.as_ref()?.iter().find(matches)?;
    Some(format!("Pod {namespace}/{name} has condition {}", condition.type_))
}

/// The first container, init containers last, that ended with an exit code (not 0) that is asked for.
fn exited<'a>(pod: &'a Pod, wanted: &PodFailurePolicyOnExitCodesRequirement) -> Option<(&'a str, i32)> {
    let status = pod.status.as_ref()?;
    let all =
        status.container_statuses.iter().flatten().chain(status.init_container_statuses.iter().flatten());
    let code = |status: &ContainerStatus| Some(status.state.as_ref()?.terminated.as_ref()?.exit_code);
    all.filter(|status| wanted.container_name.as_ref().is_none_or(|name| *name == status.name))
        .filter_map(|status| code(status).map(|code| (status.name.as_str(), code)))
        .find(|(_, code)| {
            let listed = wanted.values.contains(code);
            *code != 0
                && match wanted.operator.as_str() {
                    "In" => listed,
                    "NotIn" => !listed,
                    _ => false,
                }
        })
}

/// The rule of the success policy that the succeeded indexes meet, in words.
pub(super) fn success(policy: &SuccessPolicy, succeeded: &Indexes, completions: u32) -> Option<String> {
    let met = |(_, rule): &(usize, &k8s_openapi::api::batch::v1::SuccessPolicyRule)| {
        let enough =
            |count: u32| rule.succeeded_count.is_some_and(|wanted| i64::from(count) >= i64::from(wanted));
        match &rule.succeeded_indexes {
            Some(wanted) => {
                let wanted = Indexes::parse(wanted, completions);
                let both = wanted.overlap(succeeded);
                wanted.count() > 0 && (both == wanted.count() || enough(both))
            }
            None => enough(succeeded.count()),
        }
    };
    if succeeded.count() == 0 {
        return None;
    }
    let (at, _) = policy.rules.iter().enumerate().find(met)?;
    Some(format!("Matched rules at index {at}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{job, pod};
    use super::*;

    fn policy() -> Job {
        job(json!({"podFailurePolicy": {"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3, 4]}},
            {"action": "Count", "onExitCodes": {"containerName": "side", "operator": "NotIn", "values": [1]}},
            {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "NotIn", "values": [1]}},
        ]}}))
    }

    fn exited(container: &str, code: i32) -> Value {
        json!({"phase": "Failed", "containerStatuses": [{"name": container, "image": "i", "imageID": "", "ready": false,
            "restartCount": 0, "state": {"terminated": {"exitCode": code}}}]})
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let says = |status: Value| ruling(&policy(), &pod("p", status));
        let mut disrupted = exited("c", 42);
        disrupted["conditions"] = json!([{"type": "DisruptionTarget", "status": "True"}]);
        assert_eq!(says(disrupted), Ruling::Ignore);
        assert_eq!(says(exited("c", 3)), Ruling::FailIndex);
        assert_eq!(says(exited("side", 2)), Ruling::Count);
        assert_eq!(says(exited("c", 1)), Ruling::Count, "no rule matches");
        assert_eq!(says(exited("c", 0)), Ruling::Count, "0 is no failure");
        assert_eq!(
            says(exited("c", 42)),
            Ruling::FailJob(
                "Container c for pod default/p failed with exit code 42 matching FailJob rule at index 3"
                    .into()
            )
        );
    }

    #[test]
    fn a_condition_that_fails_the_job_is_named() {
        let job = job(json!({"podFailurePolicy": {"rules": [
            {"action": "FailJob", "onPodConditions": [{"type": "ConfigIssue", "status": "True"}]}]}}));
        let status = json!({"phase": "Failed", "conditions": [{"type": "ConfigIssue", "status": "True"}]});
        let message = "Pod default/p has condition ConfigIssue matching FailJob rule at index 0";
        assert_eq!(ruling(&job, &pod("p", status)), Ruling::FailJob(message.into()));
    }

    #[test]
    fn a_success_rule_asks_for_indexes_or_how_many_of_them() {
        let met = |rules: Value, succeeded: &str| {
            let policy = kubewright_objects::from_value(json!({"rules": rules})).expect("a policy");
            success(&policy, &Indexes::parse(succeeded, 10), 10)
        };
        let rules = json!([{"succeededIndexes": "0,2-3"}, {"succeededIndexes": "5-9", "succeededCount": 2}, {"succeededCount": 6}]);
        assert_eq!(met(rules.clone(), "0,2"), None);
        assert_eq!(met(rules.clone(), "0,2,3").as_deref(), Some("Matched rules at index 0"));
        assert_eq!(met(rules.clone(), "4,6,9").as_deref(), Some("Matched rules at index 1"));
        assert_eq!(met(rules.clone(), "0-2,4,5").as_deref(), None);
        assert_eq!(met(json!([{"succeededCount": 2}]), "0,1").as_deref(), Some("Matched rules at index 0"));
        assert_eq!(
            met(json!([{"succeededIndexes": "12-14"}]), "0,1"),
            None,
            "indexes that are out of bounds"
        );
    }
}
