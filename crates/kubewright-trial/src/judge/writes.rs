//! What the program wrote.

use std::collections::{BTreeMap, BTreeSet};

use super::{Scene, clock::is_by_the_clock, timeline::changed};
use crate::{
    finding::{Check, Finding},
    plan::Act,
    state::{CLAIMS, generation_of, is_ready},
    story::{Did, ObjectId, Rest, Who, Write, is_upkeep},
};

pub(super) fn judge(scene: &Scene<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(restless(scene));
    found.extend(ahead(scene));
    found.extend(strangers(scene));
    found.extend(undone(scene));
    found.extend(misled(scene));
    found
}

fn work<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = &'a Write> {
    scene.story.writes_in(scene.passed).filter(|write| !is_upkeep(&write.id.collection))
}

/// It never comes to rest: who writes what.
fn restless(scene: &Scene<'_>) -> Option<Finding> {
    if scene.passed.rest != Rest::Busy {
        return None;
    }
    let mut counts: BTreeMap<&ObjectId, Vec<&Write>> = BTreeMap::new();
    for write in work(scene).filter(|write| write.by != Who::Trial) {
        counts.entry(&write.id).or_default().push(write);
    }
    let (id, writes) = counts.into_iter().max_by_key(|(_, writes)| writes.len())?;
    let fields = match writes.as_slice() {
        [.., before, after] if after.did == Did::Update => changed(before, after),
        _ => Vec::new(),
    };
    let field = fields.first().map_or("", |field| field.split(' ').next().unwrap_or_default());
    Some(Finding {
        check: Check::Rest,
        subject: format!("{} {field}", id.resource()),
        message: format!(
            "it does not come to rest: {id} is written {} times; last: {}",
            writes.len(),
            fields.join(", ")
        ),
        differences: Vec::new(),
        timeline: scene.timeline(),
        steps: None,
    })
}

/// The status says that all is done, and then the operator makes more.
fn ahead(scene: &Scene<'_>) -> Option<Finding> {
    if !matches!(scene.step.act, Act::Create(_)) || scene.step.disturbance.is_some() {
        return None;
    }
    let mut claim: Option<&Write> = None;
    for write in work(scene).filter(|write| write.by == Who::Program) {
        let is_sample = scene.known.samples.contains(&write.id);
        if is_sample {
            let generation = generation_of(&write.object["metadata"]["generation"]);
            let is_ready =
                is_ready(&write.object["status"], |observed| generation_of(observed) == generation);
            claim = is_ready.then(|| claim.unwrap_or(write));
        } else if let (Some(claim), Did::Create) = (claim, write.did)
            && is_made_for(scene, write, claim)
            && !is_by_the_clock(&write.id, scene.story)
        {
            return Some(Finding {
                check: Check::StatusAhead,
                subject: claim.id.resource(),
                message: format!(
                    "the status of {} says that it is ready before {} is created",
                    claim.id, write.id
                ),
                differences: Vec::new(),
                timeline: scene.timeline(),
                steps: None,
            });
        }
    }
    None
}

/// Whether an object is made for a sample: it is where there is one sample alone, and where its owners lead to it.
fn is_made_for(scene: &Scene<'_>, made: &Write, sample: &Write) -> bool {
    if scene.known.samples.len() == 1 {
        return true;
    }
    let mut objects = vec![&made.object];
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    while let Some(object) = objects.pop() {
        let owners = object["metadata"]["ownerReferences"].as_array();
        for uid in owners.into_iter().flatten().filter_map(|owner| owner["uid"].as_str()) {
            if sample.object["metadata"]["uid"] == uid {
                return true;
            }
            if seen.insert(uid) {
                let of_owner = scene.story.writes.iter().find(|write| write.object["metadata"]["uid"] == uid);
                objects.extend(of_owner.map(|write| &write.object));
            }
        }
    }
    false
}

/// An object that somebody else made under the name that the operator wants.
fn strangers(scene: &Scene<'_>) -> Vec<Finding> {
    let occupied: Vec<&ObjectId> = scene
        .story
        .plan
        .steps
        .iter()
        .filter_map(|step| match &step.act {
            Act::Occupy(id, _) => Some(id),
            _ => None,
        })
        .collect();
    let is_touched = |write: &&Write| {
        write.by == Who::Program && write.did != Did::Create && occupied.contains(&&write.id)
    };
    let told = work(scene).filter(is_touched).take(1).map(|write| Finding {
        check: Check::Strangers,
        subject: format!("{} {}", write.id.resource(), write.did.word()),
        message: format!(
            "{} was made by somebody else, and the program has {} it",
            write.id,
            write.did.word()
        ),
        differences: Vec::new(),
        timeline: scene.timeline(),
        steps: None,
    });
    told.collect()
}

/// A program that starts anew at rest has nothing to do.
fn undone(scene: &Scene<'_>) -> Option<Finding> {
    if scene.step.act != Act::Restart || scene.step.disturbance.is_some() {
        return None;
    }
    let mut last: BTreeMap<&ObjectId, &Write> = BTreeMap::new();
    for write in scene.story.writes.iter().filter(|write| write.at < scene.passed.from) {
        last.insert(&write.id, write);
    }
    for write in work(scene).filter(|write| write.by == Who::Program) {
        let fields = match last.insert(&write.id, write) {
            Some(before) if write.did == Did::Update => changed(before, write),
            _ => vec![write.did.word().to_owned()],
        };
        // What changes in each run anyway, such as a time, is no work that was left.
        if let Some(first) = fields.first() {
            let field = first.split(' ').next().unwrap_or_default();
            return Some(Finding {
                check: Check::Restart,
                subject: format!("{} {field}", write.id.resource()),
                message: format!(
                    "started again at rest, the program writes {}: {}",
                    write.id,
                    fields.join(", ")
                ),
                differences: Vec::new(),
                timeline: scene.timeline(),
                steps: None,
            });
        }
    }
    None
}

/// A program that starts anew at rest, and reads an old state first, deletes what is wanted. Where the old state is another spec, that
/// it deletes what was not wanted then is no wonder, and is told only of what cannot be made anew as it was: what has data.
fn misled(scene: &Scene<'_>) -> Option<Finding> {
    let found = deleted_by_mistake(scene).next()?;
    Some(Finding {
        check: Check::OldState,
        subject: found.id.resource(),
        message: format!(
            "{} is wanted, and is deleted by the program, which was started again and read an old state",
            found.id
        ),
        differences: Vec::new(),
        timeline: scene.timeline(),
        steps: None,
    })
}

/// The program's writes that delete what is wanted, in a step in which it reads an old state.
pub(super) fn deleted_by_mistake<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = &'a Write> {
    let past = match scene.step.act {
        Act::RestartInThePast(step) => scene.story.plan.steps.get(step),
        _ => None,
    };
    let is_of_deletion = past.is_some_and(|step| step.act == Act::DeleteSamples);
    let has_data = |id: &ObjectId| {
        matches!(&*id.collection, CLAIMS | "apps/statefulsets") || scene.known.volatile.is_in(id)
    };
    let was_there = |id: &ObjectId| {
        let before =
            scene.story.writes.iter().rev().find(|write| write.id == *id && write.at < scene.passed.from);
        before.is_some_and(|write| write.did != Did::Delete)
    };
    // What is deleted with a finalizer, or in the foreground, is marked first.
    let deletes = |write: &&Write| {
        write.did == Did::Delete || write.object["metadata"]["deletionTimestamp"].is_string()
    };
    work(scene)
        .filter(move |_| past.is_some())
        .filter(|write| write.by == Who::Program && !scene.known.samples.contains(&write.id))
        .filter(deletes)
        .filter(move |write| (is_of_deletion || has_data(&write.id)) && was_there(&write.id))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::{
        known::Known,
        plan::{Desired, Plan, Step},
        state::State,
        story::{Passed, Story},
    };

    /// What is found when a program deletes an object in its second life, which reads the state after an act.
    fn found(act: Act, collection: &str) -> usize {
        let restart = Step::new(Act::RestartInThePast(0), Desired::Samples);
        let plan = Plan::new("past", [Step::new(act, Desired::Samples), restart]);
        let write = |at, did| Write {
            at: Duration::from_secs(at),
            id: ObjectId::new(collection, "a/b"),
            did,
            by: Who::Program,
            subresource: String::new(),
            object: json!({"metadata": {"name": "b", "namespace": "a"}}),
        };
        let passed = |step: u64| Passed {
            from: Duration::from_secs(10 * step),
            until: Duration::from_secs(10 * step + 9),
            rest: Rest::Quiet,
            state: State::new(),
            refused: None,
        };
        let steps = vec![passed(0), passed(1)];
        let writes = vec![write(1, Did::Create), write(12, Did::Delete)];
        let story = Story { plan, steps, writes, requests: Vec::new(), lives: Vec::new() };
        let (step, passed) = (&story.plan.steps[1], &story.steps[1]);
        usize::from(misled(&Scene { story: &story, step, passed, known: &Known::default() }).is_some())
    }

    #[test]
    fn what_is_made_for_another_sample_does_not_put_a_status_ahead() {
        let write = |at: u64, key: &str, did, object: serde_json::Value| {
            let collection = if key.starts_with("a/of-") { "/secrets" } else { "g/pages" };
            let at = Duration::from_secs(at);
            let id = ObjectId::new(collection, key);
            Write { at, id, did, by: Who::Program, subresource: String::new(), object }
        };
        let sample =
            |uid: &str| json!({"metadata": {"uid": uid, "generation": 1}, "status": {"ready": true}});
        let child = |owner: &str| json!({"metadata": {"uid": "child", "ownerReferences": [{"uid": owner}]}});
        let is_told = |samples: &[&str], owner: &str| {
            let step = Step::new(Act::Create(None), Desired::Samples);
            let passed = Passed {
                from: Duration::ZERO,
                until: Duration::from_secs(9),
                rest: Rest::Quiet,
                state: State::new(),
                refused: None,
            };
            let story = Story {
                plan: Plan::new("undisturbed", [step]),
                steps: vec![passed],
                writes: vec![
                    write(1, "a/one", Did::Update, sample("one")),
                    write(2, "a/of-it", Did::Create, child(owner)),
                ],
                requests: Vec::new(),
                lives: Vec::new(),
            };
            let samples = samples.iter().map(|key| ObjectId::new("g/pages", *key)).collect();
            let known = Known { samples, ..Known::default() };
            let (step, passed) = (&story.plan.steps[0], &story.steps[0]);
            ahead(&Scene { story: &story, step, passed, known: &known }).is_some()
        };
        assert!(is_told(&["a/one"], "nobody"));
        assert!(is_told(&["a/one", "a/other"], "one"));
        assert!(!is_told(&["a/one", "a/other"], "other"));
    }

    #[test]
    fn what_is_deleted_by_an_old_state_is_told_of_a_deletion_and_where_it_has_data_of_a_change() {
        assert_eq!(found(Act::DeleteSamples, "/configmaps"), 1);
        assert_eq!(found(Act::Change(None), "/configmaps"), 0);
        assert_eq!(found(Act::Change(None), "apps/statefulsets"), 1);
    }
}
