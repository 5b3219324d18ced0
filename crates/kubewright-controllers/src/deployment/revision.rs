//! Revisions: which ReplicaSet holds the how-manieth template of a Deployment, in annotations
//! (`SetNewReplicaSetAnnotations` and its neighbours in `pkg/controller/deployment/util/deployment_util.go`).

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::goal::Goal;

/// The number of the template: on a ReplicaSet its own, on a Deployment that of its current template.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The numbers that a ReplicaSet had before its template became the current one again.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// `spec.replicas` of the Deployment when it last sized the ReplicaSet.
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// The most pods that the Deployment might have had then, surge included.
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// These are the Deployment's own and not handed on to its ReplicaSets.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];
/// The revision history is cut at its old end to stay within this many bytes.
const LONGEST_HISTORY: usize = 2000;

type Annotations = BTreeMap<String, String>;

/// The value of the annotation.
pub(super) fn annotation<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// The ReplicaSet's revision; 0 when it has none.
pub(super) fn revision(set: &ReplicaSet) -> i64 {
    number(&set.metadata, REVISION).unwrap_or_default()
}

/// The annotation as a number, if it is one.
pub(super) fn number<N: std::str::FromStr>(metadata: &ObjectMeta, name: &str) -> Option<N> {
    annotation(metadata, name)?.parse().ok()
}

/// The revision of the template that comes after those of the `old` sets.
pub(super) fn next<'a>(old: impl IntoIterator<Item = &'a ReplicaSet>) -> i64 {
    old.into_iter().map(revision).max().unwrap_or_default().saturating_add(1)
}

/// The two annotations of a ReplicaSet that say for which goal it was sized.
pub(super) fn sizing(goal: &Goal) -> Annotations {
    Annotations::from([
        (DESIRED_REPLICAS.to_owned(), goal.replicas.to_string()),
        (MAX_REPLICAS.to_owned(), goal.most().to_string()),
    ])
}

/// The annotations of the ReplicaSet of the current template, from those that it has: the Deployment's, and at least
/// the revision `next`. A revision that it gives up goes into its history.
pub(super) fn of_current(deployment: &ObjectMeta, set: &ObjectMeta, next: i64) -> Annotations {
    let mut annotations = set.annotations.clone().unwrap_or_default();
    let handed_on = deployment.annotations.iter().flatten();
    annotations.extend(
        handed_on
            .filter(|(name, _)| !NOT_COPIED.contains(&name.as_str()))
            .map(|(k, v)| (k.clone(), v.clone())),
    );
    let before = annotations.get(REVISION).cloned();
    let number = before.as_deref().unwrap_or("0").parse::<i64>();
    if number.is_ok_and(|number| number < next) {
        annotations.insert(REVISION.into(), next.to_string());
        if let Some(before) = before {
            let history = annotations.get(REVISION_HISTORY).map(String::as_str).unwrap_or_default();
            if let Some(history) = remembered(history, &before) {
                annotations.insert(REVISION_HISTORY.into(), history);
            }
        }
    }
    annotations
}

/// `history` with `revision` at its end and as much of the rest as has room; `None` when not even that has.
fn remembered(history: &str, revision: &str) -> Option<String> {
    let mut rest = history;
    while !rest.is_empty() && rest.len() + 1 + revision.len() > LONGEST_HISTORY {
        rest = rest.split_once(',').map_or("", |(_, rest)| rest);
    }
    match rest {
        _ if revision.len() > LONGEST_HISTORY => None,
        "" => Some(revision.to_owned()),
        rest => Some(format!("{rest},{revision}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(annotations: &[(&str, &str)]) -> ObjectMeta {
        let annotations = annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() }
    }

    fn current(deployment: &[(&str, &str)], set: &[(&str, &str)], next: i64) -> Annotations {
        of_current(&metadata(deployment), &metadata(set), next)
    }

    #[test]
    fn annotations_are_handed_on_but_for_the_deployments_own() {
        let annotations = current(&[("note", "kept"), (REVISION, "7"), (NOT_COPIED[0], "{}")], &[], 1);
        assert_eq!(
            annotations,
            BTreeMap::from([("note".into(), "kept".into()), (REVISION.into(), "1".into())])
        );
    }

    #[test]
    fn a_template_that_comes_back_gets_a_new_revision_and_remembers_the_old() {
        let back = current(&[], &[(REVISION, "1")], 3);
        assert_eq!((back[REVISION].as_str(), back[REVISION_HISTORY].as_str()), ("3", "1"));
        let again = current(&[], &[(REVISION, "3"), (REVISION_HISTORY, "1")], 5);
        assert_eq!((again[REVISION].as_str(), again[REVISION_HISTORY].as_str()), ("5", "1,3"));
    }

    #[test]
    fn the_current_revision_stays() {
        let stays = current(&[], &[(REVISION, "3")], 2);
        assert_eq!(stays, BTreeMap::from([(REVISION.into(), "3".into())]));
        let garbled = current(&[], &[(REVISION, "three")], 2);
        assert_eq!(garbled[REVISION], "three");
    }

    #[test]
    fn a_long_history_loses_its_oldest_revisions() {
        let long = vec!["1000"; 400].join(",");
        let history = remembered(&long, "7").unwrap();
        assert!(history.len() <= LONGEST_HISTORY && history.ends_with(",1000,7"));
        assert!(history.len() > LONGEST_HISTORY - 10);
    }
}
