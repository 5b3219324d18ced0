//! What is to become of an object, by how its owners stand
//! (`attemptToDeleteItem` in `pkg/controller/garbagecollector/garbagecollector.go`).

use kube::api::{ObjectMeta, PropagationPolicy};

use super::item::{FOREGROUND, ORPHAN};

/// How an owner that an object names stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// It is there.
    Solid,
    /// It is there and waits for its dependents to go.
    Waiting,
    /// It is not there.
    Absent,
}

/// What to do about the object.
#[derive(Debug, PartialEq)]
pub(super) enum GcAction {
    /// Nothing.
    Keep,
    /// It no longer names these owners (uids), for it has others.
    Detach(Vec<String>),
    /// It goes.
    Delete(PropagationPolicy),
}

/// Judges an object by the standing of each of its owner references, in their order.
///
/// One owner that is there keeps it. Without any it goes: before its own dependents if an owner of it waits for that
/// (foreground), otherwise as its finalizers ask for.
pub(super) fn gc_action(meta: &ObjectMeta, standings: &[OwnerState], has_dependents: bool) -> GcAction {
    let references = meta.owner_references.iter().flatten().zip(standings);
    if standings.is_empty() {
        return GcAction::Keep;
    }
    if standings.contains(&OwnerState::Solid) {
        let others: Vec<_> = references
            .filter(|(_, owner_state)| **owner_state != OwnerState::Solid)
            .map(|(reference, _)| reference.uid.clone())
            .collect();
        return if others.is_empty() { GcAction::Keep } else { GcAction::Detach(others) };
    }
    if standings.contains(&OwnerState::Waiting) && has_dependents {
        return GcAction::Delete(PropagationPolicy::Foreground);
    }
    let asks_for = |finalizer: &str| meta.finalizers.iter().flatten().any(|has| has == finalizer);
    GcAction::Delete(if asks_for(ORPHAN) {
        PropagationPolicy::Orphan
    } else if asks_for(FOREGROUND) {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::item::tests::meta;
    use super::OwnerState::{Absent, Solid, Waiting};
    use super::*;

    fn judge(standings: &[OwnerState], has_dependents: bool, finalizers: &[&str]) -> GcAction {
        let owners: Vec<_> = (0..standings.len())
            .map(|n| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": format!("u{n}")}))
            .collect();
        let object = meta(json!({"name": "x", "ownerReferences": owners, "finalizers": finalizers}));
        gc_action(&object.metadata, standings, has_dependents)
    }

    #[test]
    fn an_object_whose_owners_are_all_gone_goes() {
        assert_eq!(judge(&[Absent, Absent], false, &[]), GcAction::Delete(PropagationPolicy::Background));
    }

    #[test]
    fn one_owner_that_is_there_keeps_it_and_the_others_are_forgotten() {
        assert_eq!(judge(&[Solid], true, &[]), GcAction::Keep);
        assert_eq!(
            judge(&[Absent, Solid, Waiting], true, &[]),
            GcAction::Detach(vec!["u0".into(), "u2".into()])
        );
    }

    #[test]
    fn an_owner_that_waits_has_its_dependents_wait_for_theirs() {
        assert_eq!(judge(&[Waiting], true, &[]), GcAction::Delete(PropagationPolicy::Foreground));
        assert_eq!(judge(&[Waiting], false, &[]), GcAction::Delete(PropagationPolicy::Background));
    }

    #[test]
    fn finalizers_say_how_it_goes() {
        assert_eq!(judge(&[Absent], false, &[ORPHAN]), GcAction::Delete(PropagationPolicy::Orphan));
        assert_eq!(judge(&[Absent], true, &[FOREGROUND]), GcAction::Delete(PropagationPolicy::Foreground));
    }

    proptest! {
        #[test]
        fn nothing_with_a_living_owner_is_ever_deleted(
            standings in proptest::collection::vec(prop_oneof![Just(Solid), Just(Waiting), Just(Absent)], 1..6),
            has_dependents: bool,
        ) {
            let gc_action = judge(&standings, has_dependents, &[]);
            prop_assert_eq!(matches!(gc_action, GcAction::Delete(_)), !standings.contains(&Solid));
        }
    }
}
