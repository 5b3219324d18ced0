//! The conditions of a namespace that is going away (`pkg/controller/namespace/deletion/status_condition_utils.go`).

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What a pass over the content of a namespace found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// Why the kinds could not be discovered.
    pub(super) undiscovered: Option<String>,
    /// What went wrong in deleting.
    pub(super) errors: Vec<String>,
    /// How many objects are left, by resource as people know it.
    pub(super) remaining: BTreeMap<String, usize>,
    /// On how many objects a finalizer is left.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// Whether pods hold everything else up. Kubernetes reports what is left only when it has tried everything.
    pub(super) waits_for_pods: bool,
}

impl Findings {
    /// Whether nothing of what is known is left.
    pub(super) fn is_emptied(&self) -> bool {
        self.errors.is_empty() && self.remaining.is_empty()
    }

    /// Whether nothing is left and nothing went wrong.
    pub(super) fn is_empty_namespace(&self) -> bool {
        self.undiscovered.is_none() && self.is_emptied()
    }
}

/// The conditions after `before`, in Kubernetes' order; a condition that keeps its status keeps its time.
pub(super) fn conditions(
    before: &[NamespaceCondition],
    findings: &Findings,
    now: Timestamp,
) -> Vec<NamespaceCondition> {
    let mut conditions = before.to_vec();
    for (kind, status, reason, message) in said(findings) {
        let standing = conditions.iter().position(|condition| condition.type_ == kind);
        let since = standing
            .map(|index| &conditions[index])
            .filter(|condition| condition.status == status)
            .and_then(|condition| condition.last_transition_time.clone())
            .unwrap_or(Time(now));
        let condition = NamespaceCondition {
            type_: kind.into(),
            status: status.into(),
            reason: Some(reason.into()),
            message: Some(message),
            last_transition_time: Some(since),
        };
        match standing {
            Some(index) => conditions[index] = condition,
            None => conditions.push(condition),
        }
    }
    conditions
}

/// Type, status, reason and message of each condition.
fn said(findings: &Findings) -> [(&'static str, &'static str, &'static str, String); 5] {
    let discovery = "NamespaceDeletionDiscoveryFailure";
    let discovery = match &findings.undiscovered {
        Some(error) => (discovery, "True", "DiscoveryFailed", error.clone()),
        None => (discovery, "False", "ResourcesDiscovered", "All resources successfully discovered".into()),
    };
    let parsing = (
        "NamespaceDeletionGroupVersionParsingFailure",
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed".into(),
    );
    let deleting = "NamespaceDeletionContentFailure";
    let deleting = if findings.errors.is_empty() {
        let message = "All content successfully deleted, may be waiting on finalization";
        (deleting, "False", "ContentDeleted", message.into())
    } else {
        let mut errors = findings.errors.clone();
        errors.sort();
        let (count, errors) = (errors.len(), errors.join(", "));
        let message = format!("Failed to delete all resource types, {count} remaining: {errors}");
        (deleting, "True", "ContentDeletionFailed", message)
    };
    let counted = |counts: &BTreeMap<String, usize>, verb: &str| {
        let counts: Vec<_> =
            counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances")).collect();
        (!findings.waits_for_pods && !counts.is_empty()).then(|| counts.join(", "))
    };
    let content = "NamespaceContentRemaining";
    let content = match counted(&findings.remaining, "has") {
        Some(left) => {
            (content, "True", "SomeResourcesRemain", format!("Some resources are remaining: {left}"))
        }
        None => (content, "False", "ContentRemoved", "All content successfully removed".into()),
    };
    let finalizers = "NamespaceFinalizersRemaining";
    let finalizers = match counted(&findings.finalizers, "in") {
        Some(left) => {
            let message = format!("Some content in the namespace has finalizers remaining: {left}");
            (finalizers, "True", "SomeFinalizersRemain", message)
        }
        None => {
            let message = "All content-preserving finalizers finished";
            (finalizers, "False", "ContentHasNoFinalizers", message.into())
        }
    };
    [discovery, parsing, deleting, content, finalizers]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kubewright_world::SIMULATION_START as NOW;

    use super::*;

    fn held() -> Findings {
        Findings {
            remaining: BTreeMap::from([("things.example.com".into(), 1), ("pods.".into(), 2)]),
            finalizers: BTreeMap::from([("example.com/hold".into(), 1)]),
            ..Findings::default()
        }
    }

    fn message(conditions: &[NamespaceCondition], kind: &str) -> String {
        let found = conditions.iter().find(|condition| condition.type_ == kind);
        found.and_then(|condition| condition.message.clone()).unwrap_or_default()
    }

    #[test]
    fn what_is_left_is_told_by_resource_and_by_finalizer() {
        let conditions = conditions(&[], &held(), NOW);
        assert_eq!(conditions.len(), 5);
        assert_eq!(
            message(&conditions, "NamespaceContentRemaining"),
            "Some resources are remaining: pods. has 2 resource instances, things.example.com has 1 resource instances"
        );
        assert_eq!(
            message(&conditions, "NamespaceFinalizersRemaining"),
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
        );
    }

    #[test]
    fn while_pods_are_waited_for_the_rest_is_not_reported() {
        let conditions = conditions(&[], &Findings { waits_for_pods: true, ..held() }, NOW);
        assert_eq!(message(&conditions, "NamespaceContentRemaining"), "All content successfully removed");
    }

    #[test]
    fn a_condition_keeps_its_time_while_it_keeps_its_status() {
        let first = conditions(&[], &held(), NOW);
        let later = conditions(&first, &Findings::default(), NOW + Duration::from_secs(60));
        let times: Vec<_> =
            later.iter().map(|c| c.last_transition_time.as_ref().map(|time| time.0)).collect();
        let (kept, changed) = (Some(NOW), Some(NOW + Duration::from_secs(60)));
        assert_eq!(times, [kept, kept, kept, changed, changed]);
    }

    #[test]
    fn errors_are_counted_and_sorted() {
        let findings = Findings { errors: vec!["b".into(), "a".into()], ..Findings::default() };
        assert_eq!(
            message(&conditions(&[], &findings, NOW), "NamespaceDeletionContentFailure"),
            "Failed to delete all resource types, 2 remaining: a, b"
        );
    }
}
