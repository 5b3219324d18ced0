//! The revisions of a DaemonSet: the current one, and those before (`constructHistory`, `cleanupHistory` in
//! `pkg/controller/daemon/update.go`).

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec};
use k8s_openapi::api::core::v1::Pod;
use kubewright_objects::optional;

use crate::{hash, history, pod};

/// The revisions of a set, told apart by whether they hold its template.
#[derive(Debug, PartialEq)]
pub(super) struct Revisions {
    pub(super) current: Current,
    /// All others, by number.
    pub(super) old: Vec<Arc<ControllerRevision>>,
}

/// The revision of the set's template.
#[derive(Debug, PartialEq)]
pub(super) enum Current {
    /// There is none yet.
    Create(Box<ControllerRevision>),
    /// There is.
    There {
        /// The one with the highest number.
        revision: Arc<ControllerRevision>,
        /// The number that it should have, if that is another.
        renumber: Option<i64>,
        /// Others that hold the same.
        duplicates: Vec<Arc<ControllerRevision>>,
    },
}

/// Tells the revisions of `set` apart.
pub(super) fn construct_history(set: &DaemonSet, mut known: Vec<Arc<ControllerRevision>>) -> Revisions {
    history::sort(&mut known);
    let template = optional::<DaemonSetSpec>(&set.spec).map(|spec| spec.template.clone()).unwrap_or_default();
    let data = history::snapshot(&template);
    let (mut same, old): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|revision| *history::data(revision) == data);
    let number = old.last().map_or(0, |last| history::number(last)).saturating_add(1);
    let current = match same.pop() {
        None => {
            let collisions = set.status.as_ref().and_then(|status| status.collision_count);
            let hash = hash::of_template(&template, collisions);
            let mut labels = template.metadata.and_then(|meta| meta.labels).unwrap_or_default();
            labels.insert(history::POD_LABEL.into(), hash.clone());
            Current::Create(Box::new(history::revision(set, labels, data, number, &hash)))
        }
        Some(revision) => {
            let renumber = (history::number(&revision) < number).then_some(number);
            Current::There { revision, renumber, duplicates: same }
        }
    };
    Revisions { current, old }
}

/// What the pods of the revision are labelled with: not found out from its template, so that a collision does no harm.
pub(super) fn hash_of(revision: &ControllerRevision) -> Option<&str> {
    revision.metadata.labels.as_ref()?.get(history::POD_LABEL).map(String::as_str)
}

/// Those of the `old` revisions that go: the first beyond `spec.revisionHistoryLimit` that none of the `pods` is of.
pub(super) fn forgotten<'a>(
    set: &DaemonSet,
    old: &'a [Arc<ControllerRevision>],
    pods: &[Arc<Pod>],
) -> Vec<&'a ControllerRevision> {
    let limit =
        optional::<DaemonSetSpec>(&set.spec).and_then(|spec| spec.revision_history_limit).unwrap_or(10);
    let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
    let live: BTreeSet<_> = pods.iter().filter_map(|pod| pod::label(pod, history::POD_LABEL)).collect();
    let is_live = |revision: &ControllerRevision| hash_of(revision).is_some_and(|hash| live.contains(hash));
    old.iter().filter(|revision| !is_live(revision)).take(surplus).map(|revision| &**revision).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{daemon_set, pod_on};
    use super::*;

    fn with_image(image: &str) -> DaemonSet {
        let mut set = daemon_set();
        let template = &mut set.spec.as_mut().expect("a spec").template;
        template.spec.as_mut().expect("a pod spec").containers[0].image = Some(image.into());
        set
    }

    fn stored(set: &DaemonSet, number: i64) -> Arc<ControllerRevision> {
        let Current::Create(mut revision) = construct_history(set, Vec::new()).current else {
            panic!("there are none")
        };
        revision.revision = number;
        Arc::from(revision)
    }

    #[test]
    fn a_new_template_becomes_the_next_revision_labelled_with_its_hash() {
        let old = stored(&with_image("web:1"), 4);
        let Revisions { current: Current::Create(new), old } =
            construct_history(&with_image("web:2"), vec![old])
        else {
            panic!("nothing created")
        };
        assert_eq!((new.revision, old.len()), (5, 1));
        assert_eq!(new.metadata.name, Some(format!("web-{}", hash_of(&new).expect("a hash"))));
    }

    #[test]
    fn a_template_that_comes_back_gets_the_next_number_and_the_newest_of_equals_stays() {
        let (one, two) = (stored(&with_image("web:1"), 1), stored(&with_image("web:2"), 2));
        let mut twin = (*one).clone();
        twin.metadata.name = Some("web-twin".into());
        twin.revision = 0;
        let known = vec![Arc::clone(&two), Arc::clone(&one), Arc::new(twin)];
        let Current::There { revision, renumber, duplicates } =
            construct_history(&with_image("web:1"), known).current
        else {
            panic!("nothing found")
        };
        assert_eq!((history::name(&revision), renumber), (history::name(&one), Some(3)));
        assert_eq!(duplicates.len(), 1);
        let stands = construct_history(&with_image("web:2"), vec![one, two]).current;
        assert!(matches!(stands, Current::There { renumber: None, .. }));
    }

    #[test]
    fn the_oldest_beyond_the_limit_go_unless_a_pod_is_of_them() {
        let old: Vec<_> = (1..=4).map(|n| stored(&with_image(&format!("web:{n}")), n)).collect();
        let mut set = with_image("web:5");
        set.spec.as_mut().expect("a spec").revision_history_limit = Some(2);
        let numbers = |pods: &[Arc<Pod>]| -> Vec<i64> {
            forgotten(&set, &old, pods).into_iter().map(|revision| revision.revision).collect()
        };
        assert_eq!(numbers(&[]), [1, 2]);
        let live = Arc::new(pod_on("a", hash_of(&old[0]).expect("a hash"), None));
        assert_eq!(numbers(&[live]), [2, 3]);
    }
}
