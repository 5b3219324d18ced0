//! What surrounds an operator: quotas, nodes, and whether its webhooks can be called.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Group, simplest, single};
use crate::{
    change::Change,
    known::Known,
    plan::{Act, Desired, Disturbance, NodeLoss, Plan, Step},
    story::{Did, ObjectId, Story, Who, is_upkeep},
};

/// Where pods are.
const PODS: &str = "/pods";
/// For how many nodes each way to be lost is tried.
const NODES: u64 = 1;

/// Each way in which a node is lost, where pods are on one while the samples are there: made by the program or by what it made.
pub(super) fn nodes(known: &Known, story: &Story) -> Vec<Group> {
    let mut steps = story.plan.steps.iter().zip(&story.steps);
    let Some((_, created)) = steps.find(|(step, _)| matches!(step.act, Act::Create(_))) else {
        return Vec::new();
    };
    let is_made = |id: &ObjectId| !known.samples.contains(id) && id.collection == PODS;
    let mut there = BTreeSet::new();
    for write in story.writes_in(created).filter(|write| is_made(&write.id)) {
        match write.did {
            Did::Create | Did::Update if write.object["spec"]["nodeName"].is_string() => {
                there.insert(&write.id)
            }
            _ => there.remove(&write.id),
        };
    }
    if there.is_empty() {
        return Vec::new();
    }
    let plan = |(loss, seed): (NodeLoss, u64)| {
        let lose = Step::new(Act::LoseNode(loss, seed), Desired::Samples);
        single(Plan::new(format!("node/{}/{seed}", loss.name()), [Step::create(), lose, Step::delete()]))
    };
    NodeLoss::ALL.into_iter().flat_map(|loss| (0..NODES).map(move |seed| (loss, seed))).map(plan).collect()
}

/// Its webhooks cannot be called while the samples are created, changed and deleted.
pub(super) fn webhooks(known: &Known, changes: &[Change]) -> Vec<Group> {
    if !known.has_webhooks {
        return Vec::new();
    }
    let down = |step: Step| step.under(Disturbance::WebhooksDown);
    let mut plans = vec![single(Plan::new("webhooks/create", [down(Step::create()), down(Step::delete())]))];
    if let Some(change) = simplest(changes) {
        let there = Step::new(Act::Change(Some(change.clone())), Desired::Changed(change.clone()));
        let back = Step::new(Act::Change(None), Desired::Samples);
        let steps = [Step::create(), down(there), down(back), Step::delete()];
        plans.push(single(Plan::new(format!("webhooks/{change}"), steps)));
    }
    plans
}

/// Quotas are full, and its pods are evicted.
pub(super) fn plans(children: &[(ObjectId, Value)], story: &Story) -> Vec<Group> {
    let created = story.writes.iter().filter(|write| write.by == Who::Program && write.did == Did::Create);
    let in_namespaces = created.filter(|write| !write.id.namespace().is_empty());
    let resources: BTreeSet<&str> = in_namespaces
        .map(|write| &*write.id.collection)
        .filter(|collection| !is_upkeep(collection))
        .collect();
    let full = resources.into_iter().map(|collection| {
        let create = Step::create().under(Disturbance::Quota(collection.to_owned()));
        let name = format!("quota/{}", crate::story::resource(collection));
        single(Plan::new(name, [create, Step::delete()]))
    });
    let pods = children.iter().filter(|(id, _)| id.collection == "/pods");
    let evicted = pods.map(|(id, _)| {
        let evict = Step::new(Act::DeleteObject(id.clone()), Desired::Samples);
        single(Plan::new(
            format!("evicted/{}", id.key),
            [Step::create(), evict.under(Disturbance::Kill(0)), Step::delete()],
        ))
    });
    full.chain(evicted).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::{
        planner,
        state::State,
        story::{Passed, Rest, Write},
    };

    fn names(groups: &[Group]) -> Vec<String> {
        groups.concat().into_iter().map(|plan| plan.name).collect()
    }

    /// A story in which a pod is made, on a node or on none, and what comes of it.
    fn story(pod: &Value, last: Option<Did>) -> Story {
        let passed = |at| Passed {
            from: Duration::from_secs(at),
            until: Duration::from_secs(at + 9),
            rest: Rest::Quiet,
            state: State::new(),
            refused: None,
        };
        let write = |at, did| Write {
            at: Duration::from_secs(at),
            id: ObjectId::new(PODS, "a/b"),
            did,
            by: Who::Cluster,
            subresource: String::new(),
            object: pod.clone(),
        };
        let writes = [Some(Did::Create), last].into_iter().flatten().zip(11..);
        Story {
            plan: planner::undisturbed(1),
            steps: vec![passed(0), passed(10), passed(20)],
            writes: writes.map(|(did, at)| write(at, did)).collect(),
            requests: Vec::new(),
            lives: Vec::new(),
        }
    }

    #[test]
    fn nodes_are_lost_where_pods_are_on_them_at_rest() {
        let known = Known::default();
        let on_node = json!({"spec": {"nodeName": "node-0"}});
        let found = names(&nodes(&known, &story(&on_node, None)));
        assert_eq!(found, ["node/deleted/0", "node/not-ready/0", "node/drained/0"]);
        for (pod, last) in [(&on_node, Some(Did::Delete)), (&json!({"spec": {}}), None)] {
            assert_eq!(names(&nodes(&known, &story(pod, last))), Vec::<String>::new());
        }
    }

    #[test]
    fn webhooks_are_away_where_they_are_called() {
        let change = Change::one(0, "/spec/size", Some("2".to_owned()), false);
        let of = |has_webhooks| {
            let known = Known { has_webhooks, ..Known::default() };
            names(&webhooks(&known, std::slice::from_ref(&change)))
        };
        assert_eq!(of(true), ["webhooks/create", "webhooks/spec.size=2"]);
        assert_eq!(of(false), Vec::<String>::new());
    }
}
