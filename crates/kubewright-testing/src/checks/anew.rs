//! What operators come to is a function of what was asked for: made from scratch it is the same.
//!
//! Judged: what operators have made at the end of the test, against what they make of the same objects when these are created
//! again, without faults, after everything was deleted. Objects are compared without what the server gives, and with numbers for
//! generated names (`kubewright_trial::state`).
//!
//! Not judged: what is another the second time that it is made (a generated password); what a timer has brought about (writes
//! of an operator more than five seconds after anybody else's, and what follows of them), with all objects of a kind that it creates or deletes so; what the
//! test has written into objects that operators have made; what somebody else has deleted of these; statuses, which may tell of the way to the end (an eviction, a count);
//! tests that say that history counts. All of it where the objects cannot be made again: definitions, what has an owner that the test has not made, and
//! what the test has written a status of.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kubewright_cluster::recording;
use kubewright_store::Revision;
use kubewright_trial::state::{self, Difference, State, Volatile};
use kubewright_trial::story::{Did, ObjectId, Who, Write};
use serde_json::Value;

use super::evidence::{Evidence, TEST, is_operator, is_work};

/// For so long after somebody's write what an operator writes is its answer.
const ANSWER: SignedDuration = SignedDuration::from_secs(5);
/// The most differences that are told.
const TOLD: usize = 5;

/// A cluster in which the objects of the test were made again.
#[derive(Debug, Default)]
pub(crate) struct Anew {
    /// When the test had ended and all was at rest.
    pub(crate) before: Revision,
    /// When all was at rest after they were made again: once, or twice.
    pub(crate) after: Vec<Revision>,
}

pub(super) fn judge(evidence: &Evidence) -> Option<String> {
    let found = differences(evidence);
    if found.is_empty() {
        return None;
    }
    let mut lines: Vec<String> = found.iter().take(TOLD).map(Difference::text).collect();
    if found.len() > TOLD {
        lines.push(format!("and {} more", found.len() - TOLD));
    }
    Some(format!(
        "what operators have come to is not what they make of the same objects from scratch:\n    {}",
        lines.join("\n    ")
    ))
}

/// Where the end of the test is not what was made from scratch.
pub(crate) fn differences(evidence: &Evidence) -> Vec<Difference> {
    let Anew { before, after } = &evidence.anew;
    let Some(first) = after.first() else { return Vec::new() };
    let writes = writes(evidence);
    let samples: BTreeSet<&ObjectId> = writes
        .iter()
        .filter(|(_, one)| one.by == Who::Trial && one.did == Did::Create)
        .map(|(_, one)| &one.id)
        .collect();
    let samples: Vec<ObjectId> = samples.into_iter().cloned().collect();
    let state = |until: Revision| -> State {
        let until: Vec<Write> = writes
            .iter()
            .take_while(|(revision, _)| *revision <= until)
            .map(|(_, one)| one.clone())
            .collect();
        state::state(&until, &samples)
    };
    let (reached, expected) = (state(*before), state(*first));
    let mut volatile = Volatile::default();
    after.iter().skip(1).for_each(|again| volatile.learn(&expected, &state(*again)));
    let mut found = state::differences(&expected, &reached, &volatile);
    if found.is_empty() {
        return found;
    }
    let by_timers = ByTimers::of(evidence, *before);
    let marked = Marked::of(&writes, *before);
    let is_left_out = |one: &Difference| {
        let is_renamed = !one.field.is_empty() && marked.generated.contains(&one.id.collection);
        let is_taken = one.reached.is_none() && marked.taken.contains(&one.id.collection);
        is_renamed || is_taken || by_timers.has(&one.id) || marked.places.has(&one.id, &one.field)
    };
    found.retain(|one| !is_left_out(one) && !one.field.starts_with("/status"));
    found
}

/// The writes since the test began, as a trial has them.
fn writes(evidence: &Evidence) -> Vec<(Revision, Write)> {
    let began = evidence.writes().first().map_or(Timestamp::UNIX_EPOCH, |first| first.time);
    let mut statuses: BTreeMap<ObjectId, Value> = BTreeMap::new();
    let converted = evidence.writes().iter().map(|one| {
        let id = ObjectId::new(one.collection.to_string(), one.key.to_string());
        let object = one.object();
        let status = statuses.insert(id.clone(), object["status"].clone());
        let by = match &*one.by.user {
            TEST => Who::Trial,
            user if is_operator(user) => Who::Program,
            _ => Who::Cluster,
        };
        let reports = one.did == recording::Did::Update && status.unwrap_or_default() != object["status"];
        let write = Write {
            at: Duration::try_from(one.time.duration_since(began)).unwrap_or_default(),
            id,
            did: match one.did {
                recording::Did::Create => Did::Create,
                recording::Did::Update => Did::Update,
                recording::Did::Delete => Did::Delete,
            },
            by,
            subresource: if reports { "status".to_owned() } else { String::new() },
            object,
        };
        (one.revision, write)
    });
    converted.collect()
}

/// What the test has written into objects that operators have made, and that are there.
#[derive(Default)]
struct Marked {
    places: Volatile,
    /// Kinds of objects with generated names, which have other names in a state.
    generated: BTreeSet<String>,
    /// Kinds of which somebody else has taken away objects with generated names.
    taken: BTreeSet<String>,
}

impl Marked {
    fn of(writes: &[(Revision, Write)], before: Revision) -> Self {
        let mut marks: BTreeMap<&ObjectId, Vec<(&Write, &Write)>> = BTreeMap::new();
        let mut last: BTreeMap<&ObjectId, &Write> = BTreeMap::new();
        for (_, write) in writes.iter().take_while(|(revision, _)| *revision <= before) {
            let previous = last.insert(&write.id, write);
            match (write.did, write.by) {
                (Did::Create, Who::Program) => drop(marks.insert(&write.id, Vec::new())),
                (Did::Create | Did::Delete, _) => drop(marks.remove(&write.id)),
                (Did::Update, Who::Trial) => {
                    marks
                        .get_mut(&write.id)
                        .into_iter()
                        .zip(previous)
                        .for_each(|(marks, was)| marks.push((was, write)));
                }
                (Did::Update, _) => {}
            }
        }
        let mut found = Self::default();
        // What somebody else has taken away, an operator need not have made again.
        let is_taken = |write: &&&Write| write.did == Did::Delete && write.by != Who::Program;
        for gone in last.values().filter(is_taken) {
            if gone.object["metadata"]["generateName"].is_string() {
                found.taken.insert(gone.id.collection.clone());
            }
            found.places.learn(&State::from([(gone.id.clone(), gone.object.clone())]), &State::new());
        }
        for (was, is) in marks.into_values().flatten() {
            if is.object["metadata"]["generateName"].is_string() {
                found.generated.insert(is.id.collection.clone());
            }
            let state = |write: &Write| State::from([(write.id.clone(), write.object.clone())]);
            found.places.learn(&state(was), &state(is));
        }
        found
    }
}

/// What timers have brought about.
#[derive(Default)]
struct ByTimers {
    /// Kinds of which objects came or went so.
    collections: BTreeSet<String>,
    /// What was changed so.
    objects: BTreeSet<ObjectId>,
}

impl ByTimers {
    fn of(evidence: &Evidence, before: Revision) -> Self {
        let mut found = Self::default();
        // When something happened last that had its reason in what people do, and when something that a timer began.
        let (mut caused, mut timed): (Option<Timestamp>, Option<Timestamp>) = (None, None);
        for write in evidence.writes().iter().filter(|one| one.revision <= before && is_work(&one.collection))
        {
            let is_recent =
                |time: Option<Timestamp>| time.is_some_and(|time| write.time.duration_since(time) <= ANSWER);
            let is_timed = match is_operator(&write.by.user) {
                true => !is_recent(caused) || timed > caused,
                // What built-in controllers and nodes make of what a timer began belongs to it.
                false => write.by.user != TEST && timed > caused && is_recent(timed),
            };
            if !is_timed {
                caused = Some(write.time);
                continue;
            }
            timed = Some(write.time);
            if !is_operator(&write.by.user) {
                continue;
            }
            match write.did {
                recording::Did::Update => {
                    found.objects.insert(ObjectId::new(write.collection.to_string(), write.key.to_string()));
                }
                recording::Did::Create | recording::Did::Delete => {
                    found.collections.insert(write.collection.to_string());
                }
            }
        }
        found
    }

    fn has(&self, id: &ObjectId) -> bool {
        self.objects.contains(id) || self.collections.contains(&id.collection)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::evidence::stories::{OPERATOR, Story};
    use super::*;

    const PAGE: &str = "shop.example/pages default/a";
    const MAP: &str = "/configmaps default/a";

    fn map(data: &Value, uid: &str) -> Value {
        json!({"metadata": {"namespace": "default", "name": "a", "uid": uid}, "data": data})
    }

    fn page(uid: &str) -> Value {
        json!({"metadata": {"namespace": "default", "name": "a", "uid": uid}})
    }

    /// A page is made, then its ConfigMap, and it is changed after so many seconds; then it is made again from scratch, twice if wanted.
    fn judged(changed_after: f64, first: &Value, again: &[Value]) -> Option<String> {
        let mut story = Story::default()
            .write(0.0, TEST, recording::Did::Create, PAGE, page("1"))
            .write(0.1, OPERATOR, recording::Did::Create, MAP, map(&json!({"begun": "yes"}), "2"))
            .write(changed_after, OPERATOR, recording::Did::Update, MAP, map(first, "2"));
        let (before, mut after) = (Revision(3), Vec::new());
        for (number, data) in again.iter().enumerate() {
            let (time, number) = (20.0 + 10.0 * after.len() as f64, number as u64);
            story = story
                .write(time, TEST, recording::Did::Delete, PAGE, page("1"))
                .write(time, "", recording::Did::Delete, MAP, map(data, "2"))
                .write(time + 1.0, TEST, recording::Did::Create, PAGE, page("3"))
                .write(time + 1.1, OPERATOR, recording::Did::Create, MAP, map(data, "4"));
            after.push(Revision(7 + 4 * number));
        }
        judge(&Evidence { anew: Anew { before, after }, ..story.evidence() })
    }

    #[test]
    fn what_is_not_made_from_scratch_is_found() {
        let found = judged(0.2, &json!({"old": "1", "text": "a"}), &[json!({"text": "a"})]).expect("found");
        assert!(
            found.contains("configmaps default/a: /data/old is \"1\", and is not to be there"),
            "{found}"
        );
        assert_eq!(judged(0.2, &json!({"text": "a"}), &[json!({"text": "a"})]), None);
    }

    #[test]
    fn what_is_another_each_time_and_what_comes_by_time_is_not() {
        let random = |value: &str| json!({"password": value});
        assert_eq!(judged(0.2, &random("a"), &[random("b"), random("c")]), None);
        assert!(judged(0.2, &random("a"), &[random("b"), random("b")]).is_some(), "it is no chance");
        assert_eq!(judged(9.0, &json!({"at": "nine"}), &[json!({"at": "begun"})]), None);
    }
}
