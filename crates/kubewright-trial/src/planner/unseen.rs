//! States that a living program does not see: its watches leave a write out and go on, and it reads what is newer by the next event of
//! that object, or when it lists anew.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Group, name, of_each_field, single};
use crate::{
    change::Change,
    known::Known,
    plan::{Act, Desired, Disturbance, Plan, Step},
    story::ObjectId,
};

/// Changes, a deletion of the samples, and deletions of what was made of them that are not seen.
pub(super) fn plans(known: &Known, children: &[(ObjectId, Value)], changes: &[Change]) -> Vec<Group> {
    let changed = of_each_field(changes).into_iter().map(of_change);
    let deleted = first_of_each_kind(children).into_iter().map(of_deletion);
    let mut plans: Vec<Group> = Vec::new();
    let (mut changed, mut deleted) = (changed, deleted);
    loop {
        let turn: Vec<Plan> = [changed.next(), deleted.next()].into_iter().flatten().collect();
        if turn.is_empty() {
            break;
        }
        plans.extend(turn.into_iter().map(single));
    }
    if !has_finalizers(known) {
        plans.push(single(of_samples()));
    }
    plans
}

fn unseen(act: Act, hidden: Act, desired: Desired) -> Step {
    Step::new(act, desired).under(Disturbance::Unseen(Box::new(hidden)))
}

/// A sample is changed and changed back, and the change is not seen; then it is changed, and what is seen first is a later write.
fn of_change(change: &Change) -> Plan {
    let there = || Act::Change(Some(change.clone()));
    Plan::new(
        format!("unseen/{change}"),
        [
            Step::create(),
            unseen(Act::Change(None), there(), Desired::Samples),
            unseen(Act::Touch, there(), Desired::Changed(change.clone())),
            Step::new(Act::Change(None), Desired::Samples),
            Step::delete(),
        ],
    )
}

/// An object is deleted by somebody, and that it is gone is seen when the program lists anew. Real watches, too, tell what was missed
/// so when they come back after 410.
fn of_deletion(id: &ObjectId) -> Plan {
    let lost = unseen(Act::Relist(id.clone()), Act::DeleteObject(id.clone()), Desired::Samples);
    Plan::new(format!("unseen/deleted/{}", name(id)), [Step::create(), lost, Step::delete()])
}

/// The samples are deleted, and made anew: seen are the new ones.
fn of_samples() -> Plan {
    let again = unseen(Act::Create(None), Act::DeleteSamples, Desired::Samples);
    Plan::new("unseen/again", [Step::create(), again, Step::delete()])
}

fn first_of_each_kind(children: &[(ObjectId, Value)]) -> Vec<&ObjectId> {
    let mut kinds = BTreeSet::new();
    children.iter().map(|(id, _)| id).filter(|id| kinds.insert(&id.collection)).collect()
}

/// Whether a sample has finalizers: it stays then until the program has seen that it is deleted.
fn has_finalizers(known: &Known) -> bool {
    let Some(state) = known.expected.get(&Desired::Samples) else { return true };
    let of_sample = |id: &ObjectId| state.get(id).map(|sample| &sample["metadata"]["finalizers"]);
    known
        .samples
        .iter()
        .filter_map(of_sample)
        .any(|finalizers| finalizers.as_array().is_some_and(|finalizers| !finalizers.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::State;

    #[test]
    fn a_change_of_each_field_and_an_object_of_each_kind_are_not_seen() {
        let change = |field: &str| Change::one(0, field, Some("2".to_owned()), false);
        let child = |name: &str| (ObjectId::new("/configmaps", name), json!({}));
        let sample = ObjectId::new("g/pages", "a/b");
        let known = |finalizers: Value| {
            let page = json!({"metadata": {"finalizers": finalizers}});
            let state = State::from([(sample.clone(), page)]);
            let expected = [(Desired::Samples, state)].into();
            Known { samples: vec![sample.clone()], expected, ..Known::default() }
        };
        let names = |finalizers: Value| -> Vec<String> {
            let changes = [change("/spec/a"), change("/spec/b")];
            let all = plans(&known(finalizers), &[child("a/x"), child("a/y")], &changes);
            all.concat().into_iter().map(|plan| plan.name).collect()
        };
        let seen = ["unseen/spec.a=2", "unseen/deleted/configmaps/a/x", "unseen/spec.b=2"];
        assert_eq!(names(json!(["f"])), seen);
        assert_eq!(names(json!([]))[3], "unseen/again");
    }
}
