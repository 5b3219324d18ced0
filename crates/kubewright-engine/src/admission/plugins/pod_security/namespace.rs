//! A namespace whose policy is set or changes.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_kinds::built_in::core::pod::POD;
use kubewright_meta::{ApiError, FieldError, object};
use serde_json::Value;

use super::checks;
use super::policy::{Level, Policy, Standard};
use super::{Operation, Review};

/// The most pods that are looked at.
const MOST: usize = 3000;

/// Checks the labels of a new or changed namespace, and warns of the pods in it that a stricter policy would refuse.
///
/// # Errors
/// 422 for labels that say nothing, unless they were there before.
pub(super) fn validate(
    review: &Review<'_>,
    namespace: &Value,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    if !review.subresource.is_empty() {
        return Ok(());
    }
    let (new, errors) = policy_of(namespace);
    let before = review.old.map(policy_of);
    if !errors.is_empty() && before.as_ref().is_none_or(|(_, old)| *old != errors) {
        let kind = review.call.kind;
        return Err(ApiError::invalid(kind, object::name(namespace), &errors));
    }
    if review.operation == Operation::Update
        && let Some((old, _)) = before
        && is_stricter(new.enforce, old.enforce)
    {
        warn_of_pods(review, object::name(namespace), new.enforce, warnings);
    }
    Ok(())
}

fn policy_of(namespace: &Value) -> (Policy, Vec<FieldError>) {
    let labels = &namespace["metadata"]["labels"];
    Policy::of(|label| labels[label].as_str())
}

fn is_stricter(new: Standard, old: Standard) -> bool {
    new != old && new.level != Level::Privileged && (new.version != old.version || new.level > old.level)
}

/// Pods of one controller are alike: one of each comes first.
fn warn_of_pods(review: &Review<'_>, namespace: &str, standard: Standard, warnings: &mut Vec<String>) {
    let pods = review.objects.in_namespace(&POD, namespace);
    let mut controllers = BTreeSet::new();
    let (mut ordered, alike): (Vec<&Value>, Vec<&Value>) =
        pods.iter().partition(|pod| controller_of(pod).is_none_or(|uid| controllers.insert(uid)));
    ordered.extend(alike);
    let total = ordered.len();
    if total > MOST {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MOST} of {total} existing pods"
        ));
    }
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in ordered.into_iter().take(MOST) {
        let reasons: Vec<String> =
            checks::evaluate(standard, pod).into_iter().map(|finding| finding.reason).collect();
        if !reasons.is_empty() {
            found.entry(reasons.join(", ")).or_default().push(object::name(pod));
        }
    }
    if found.is_empty() {
        return;
    }
    warnings.push(format!(
        "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{standard}\""
    ));
    let mut told: Vec<String> = found.iter().map(|(reasons, pods)| describe_pods(reasons, pods)).collect();
    told.sort();
    warnings.extend(told);
}

fn describe_pods(reasons: &str, pods: &[&str]) -> String {
    let first = pods.iter().min().copied().unwrap_or_default();
    match pods.len() {
        1 => format!("{first}: {reasons}"),
        2 => format!("{first} (and 1 other pod): {reasons}"),
        many => format!("{first} (and {} other pods): {reasons}", many - 1),
    }
}

fn controller_of(pod: &Value) -> Option<String> {
    let owners = pod["metadata"]["ownerReferences"].as_array()?;
    let controller = owners.iter().find(|owner| owner["controller"] == true)?;
    Some(controller["uid"].as_str()?.to_owned())
}
