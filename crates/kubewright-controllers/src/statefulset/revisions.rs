//! The revisions of a StatefulSet: the one that its pods are on, the one that they go to, and those before
//! (`getStatefulSetRevisions`, `truncateHistory` in `pkg/controller/statefulset/stateful_set_control.go`).

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use kubewright_objects::optional;

use super::member;
use crate::{hash, history};

/// The label of a revision that says what its name ends with.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// A template under the name of its revision.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Revision {
    pub(super) name: String,
    pub(super) template: PodTemplateSpec,
}

impl Revision {
    /// `None` when the stored revision holds no template.
    fn of(stored: &ControllerRevision) -> Option<Self> {
        Some(Self { name: history::name(stored).to_owned(), template: history::template(stored)? })
    }
}

/// Where the pods are and where they go to; between updates both are the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Revisions {
    pub(super) current: Revision,
    pub(super) update: Revision,
    /// How often the name of a new revision was taken.
    pub(super) collisions: i32,
}

impl Revisions {
    /// `update` is the set's template; `known` are its revisions. `None` when a revision holds no template.
    pub(super) fn of(
        set: &StatefulSet,
        known: &[Arc<ControllerRevision>],
        update: &ControllerRevision,
        collisions: i32,
    ) -> Option<Self> {
        let update = Revision::of(update)?;
        let current = set.status.as_ref().and_then(|status| status.current_revision.as_deref());
        let current = known.iter().find(|revision| Some(history::name(revision)) == current);
        let current = current.map_or_else(|| Some(update.clone()), |current| Revision::of(current))?;
        Some(Self { current, update, collisions })
    }
}

/// How the set's template becomes its newest revision.
#[derive(Debug, PartialEq)]
pub(super) enum Newest {
    /// It is.
    Stands(Arc<ControllerRevision>),
    /// An earlier one is the same; it gets this number.
    Renumber(Arc<ControllerRevision>, i64),
    /// There is none yet.
    Create(Box<ControllerRevision>),
}

/// What is to be done so that the newest of `known` (sorted) holds the template of `set`.
pub(super) fn newest(set: &StatefulSet, known: &[Arc<ControllerRevision>]) -> Newest {
    let number = known.last().map_or(1, |last| history::number(last).saturating_add(1));
    let new = new(set, number, collisions(set));
    let same = known.iter().rfind(|revision| history::data(revision) == history::data(&new));
    match (same, known.last()) {
        (None, _) => Newest::Create(Box::new(new)),
        (Some(same), Some(last)) if history::data(last) == history::data(same) => {
            Newest::Stands(Arc::clone(last))
        }
        (Some(same), _) => Newest::Renumber(Arc::clone(same), number),
    }
}

/// A revision of the template of `set`, named with this many collisions.
pub(super) fn new(set: &StatefulSet, number: i64, collisions: i32) -> ControllerRevision {
    let template =
        optional::<StatefulSetSpec>(&set.spec).map(|spec| spec.template.clone()).unwrap_or_default();
    let mut labels = template.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default();
    let data = history::snapshot(&template);
    let hash = hash::of_revision(&data, collisions);
    labels.insert(HASH_LABEL.into(), hash.clone());
    history::revision(set, labels, data, number, &hash)
}

/// `status.collisionCount`.
pub(super) fn collisions(set: &StatefulSet) -> i32 {
    set.status.as_ref().and_then(|status| status.collision_count).unwrap_or_default()
}

/// Those of `known` (sorted) that go: the oldest beyond `spec.revisionHistoryLimit` that no pod is on.
pub(super) fn forgotten<'a>(
    set: &StatefulSet,
    known: &'a [Arc<ControllerRevision>],
    revisions: &Revisions,
    pods: &[Arc<Pod>],
) -> Vec<&'a ControllerRevision> {
    let limit =
        optional::<StatefulSetSpec>(&set.spec).and_then(|spec| spec.revision_history_limit).unwrap_or(10);
    let Ok(limit) = usize::try_from(limit) else { return Vec::new() };
    let mut live: BTreeSet<&str> = pods.iter().map(|pod| member::revision(pod)).collect();
    live.extend([revisions.current.name.as_str(), revisions.update.name.as_str()]);
    let past: Vec<_> = known.iter().filter(|revision| !live.contains(history::name(revision))).collect();
    let surplus = past.len().saturating_sub(limit);
    past.into_iter().take(surplus).map(|revision| &**revision).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{image, stateful_set};
    use super::*;

    fn stored(set: &StatefulSet, number: i64) -> Arc<ControllerRevision> {
        Arc::new(new(set, number, 0))
    }

    fn with_image(name: &str) -> StatefulSet {
        let mut set = stateful_set(1);
        image(&mut set, name);
        set
    }

    #[test]
    fn a_new_template_becomes_a_revision_with_the_next_number() {
        let known = [stored(&with_image("web:1"), 7)];
        let Newest::Create(new) = newest(&with_image("web:2"), &known) else { panic!("nothing created") };
        assert_eq!(new.revision, 8);
        let hash = &new.metadata.labels.as_ref().expect("labels")[HASH_LABEL];
        assert_eq!(new.metadata.name, Some(format!("web-{hash}")));
        assert_eq!(new.metadata.labels.as_ref().expect("labels")["app"], "web");
    }

    #[test]
    fn the_newest_stands_as_long_as_the_template_does() {
        let set = with_image("web:1");
        let known = [stored(&with_image("web:0"), 1), stored(&set, 2)];
        assert_eq!(newest(&set, &known), Newest::Stands(Arc::clone(&known[1])));
    }

    #[test]
    fn a_template_that_comes_back_gives_its_revision_a_new_number() {
        let known = [stored(&with_image("web:1"), 1), stored(&with_image("web:2"), 2)];
        assert_eq!(newest(&with_image("web:1"), &known), Newest::Renumber(Arc::clone(&known[0]), 3));
    }

    #[test]
    fn another_collision_is_another_name() {
        let set = with_image("web:1");
        assert_ne!(new(&set, 1, 0).metadata.name, new(&set, 1, 1).metadata.name);
    }

    #[test]
    fn the_current_revision_is_the_one_of_the_status_or_else_the_newest() {
        let (old, mut set) = (stored(&with_image("web:1"), 1), with_image("web:2"));
        let new = stored(&set, 2);
        let known = [Arc::clone(&old), Arc::clone(&new)];
        let fresh = Revisions::of(&set, &known, &new, 0).expect("templates");
        assert_eq!(fresh.current, fresh.update);
        set.status.get_or_insert_default().current_revision = old.metadata.name.clone();
        let updating = Revisions::of(&set, &known, &new, 0).expect("templates");
        assert_eq!(updating.current.name, history::name(&old));
        assert_eq!(updating.current.template, with_image("web:1").spec.expect("a spec").template);
    }

    #[test]
    fn the_oldest_beyond_the_limit_go_unless_a_pod_is_on_them() {
        let known: Vec<_> = (1..=5).map(|n| stored(&with_image(&format!("web:{n}")), n)).collect();
        let mut set = with_image("web:5");
        set.spec.as_mut().expect("a spec").revision_history_limit = Some(1);
        let revisions = Revisions::of(&set, &known, &known[4], 0).expect("templates");
        let mut pod = Pod::default();
        let label = (history::POD_LABEL.to_owned(), history::name(&known[1]).to_owned());
        pod.metadata.labels = Some([label].into());
        let names = |gone: Vec<&ControllerRevision>| -> Vec<i64> {
            gone.into_iter().map(|revision| revision.revision).collect()
        };
        assert_eq!(names(forgotten(&set, &known, &revisions, &[])), [1, 2, 3]);
        assert_eq!(names(forgotten(&set, &known, &revisions, &[Arc::new(pod)])), [1, 3]);
    }
}
