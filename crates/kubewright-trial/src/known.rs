//! What is known of an operator: what it comes to when nothing goes wrong.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    change::Change,
    plan::{Act, Desired},
    state::{State, Volatile, differences, is_ready},
    story::{ObjectId, Request, Rest, Story},
};

/// What runs in which nothing went wrong have shown.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The samples.
    pub samples: Vec<ObjectId>,
    /// What the operator comes to, by what is asked of it.
    pub expected: BTreeMap<Desired, State>,
    /// What differs by itself.
    pub volatile: Volatile,
    /// Wishes that the operator does not fulfil: what it comes to may depend on what it fulfilled before.
    pub unfulfilled: BTreeSet<Desired>,
    /// The changes of which it was looked at again what they come to.
    pub confirmed: BTreeSet<Change>,
    /// What the operator makes for itself, without a sample.
    pub own: BTreeSet<ObjectId>,
    /// The collections of samples that it does not watch.
    pub unwatched: BTreeSet<String>,
    /// The requests that were carried out, as texts: its role allows them.
    pub allowed: BTreeSet<String>,
    /// The collections of the kinds that its manifests define.
    pub defined: BTreeSet<String>,
    /// Whether its webhooks are called.
    pub has_webhooks: bool,
}

impl Known {
    /// Nothing is known yet.
    #[must_use]
    pub fn of(samples: Vec<ObjectId>) -> Self {
        Self { samples, ..Self::default() }
    }

    /// Learns which of the samples' kinds the program never watches.
    pub fn learn_watches(&mut self, story: &Story) {
        let is_watched = |collection: &String| {
            story.requests.iter().any(|one| one.verb == "watch" && one.collection == *collection)
        };
        let collections = self.samples.iter().map(|id| id.collection.clone());
        self.unwatched = collections.filter(|collection| !is_watched(collection)).collect();
    }

    /// Learns from a run in which nothing went wrong.
    pub fn learn(&mut self, story: &Story) {
        let is_done = |request: &&Request| request.code.is_some_and(|code| code < 300);
        self.allowed.extend(story.requests.iter().filter(is_done).map(Request::text));
        for (step, passed) in story.plan.steps.iter().zip(&story.steps) {
            if passed.rest != Rest::Quiet || passed.refused.is_some() {
                continue;
            }
            if step.act == Act::Wait {
                self.own.extend(passed.state.keys().filter(|id| !self.samples.contains(id)).cloned());
                continue;
            }
            let is_fulfilled = self.is_as_ready(&passed.state)
                && !self.has_new_error(&passed.state)
                && !self.has_lost_condition(&passed.state)
                && !story.requests_in(passed).any(|request| self.is_refused_for_what_it_says(request));
            if matches!(step.desired, Desired::Changed(_)) && !is_fulfilled {
                self.unfulfilled.insert(step.desired.clone());
                continue;
            }
            let is_of_change = matches!(step.desired, Desired::Changed(_));
            match self.expected.get_mut(&step.desired) {
                // What was seen first was on its way, as on a busy machine.
                Some(known) if is_of_change && has_more(&passed.state, known) => {
                    *known = passed.state.clone();
                }
                Some(known) => self.volatile.learn(known, &passed.state),
                None => drop(self.expected.insert(step.desired.clone(), passed.state.clone())),
            }
        }
    }

    /// The changes that a story's steps come to and that were looked at once alone: what is expected of them may have been seen too early.
    /// Each is given once.
    pub fn doubted(&mut self, story: &Story) -> Vec<Change> {
        let steps = story.plan.steps.iter().filter(|step| !matches!(step.act, Act::Create(_)));
        let changes = steps.filter_map(|step| match &step.desired {
            Desired::Changed(change) if self.expected.contains_key(&step.desired) => Some(change.clone()),
            _ => None,
        });
        let changes: BTreeSet<Change> = changes.collect();
        changes.into_iter().filter(|change| self.confirmed.insert(change.clone())).collect()
    }

    /// Whether a write was refused for what is in it: as invalid, or, as a pod with a service account that is not there, by admission, with a code
    /// that says that it is forbidden. That it is the role which forbids it is known where the same was done before; but for roles, which
    /// nobody may give who has less.
    #[must_use]
    pub fn is_refused_for_what_it_says(&self, request: &Request) -> bool {
        let is_of_roles = || request.collection.starts_with("rbac.authorization.k8s.io/");
        let is_refused = match request.code {
            Some(400 | 422) => true,
            Some(403) => !is_of_roles() && self.allowed.contains(&request.text()),
            _ => false,
        };
        is_refused && request.writes() && !request.struck
    }

    /// Whether it was seen what it comes to when it is asked for this.
    #[must_use]
    pub fn knows(&self, desired: &Desired) -> bool {
        self.expected.contains_key(desired) || self.unfulfilled.contains(desired)
    }

    /// Whether each sample that says that it is ready as its file has it says so in a state.
    fn is_as_ready(&self, state: &State) -> bool {
        let Some(plain) = self.expected.get(&Desired::Samples) else { return true };
        let is_ready = |state: &State, id: &ObjectId| {
            state
                .get(id)
                .is_some_and(|object| is_ready(&object["status"], |observed| observed == "<current>"))
        };
        self.samples.iter().all(|id| !is_ready(plain, id) || is_ready(state, id))
    }

    /// Whether the status of a sample says in a field of its own what is wrong, such as `errorMessage`, where the plain one says nothing.
    fn has_new_error(&self, state: &State) -> bool {
        let Some(plain) = self.expected.get(&Desired::Samples) else { return false };
        let errors = |state: &State, id: &ObjectId| -> BTreeSet<String> {
            state.get(id).map(|object| errors_in(&object["status"])).unwrap_or_default()
        };
        self.samples.iter().any(|id| !errors(state, id).is_subset(&errors(plain, id)))
    }

    /// Whether a condition of a sample that is true where nothing is changed is false: what was asked for is not done, and that is said.
    fn has_lost_condition(&self, state: &State) -> bool {
        let Some(plain) = self.expected.get(&Desired::Samples) else { return false };
        let with = |state: &State, id: &ObjectId, status: &str| -> BTreeSet<String> {
            let conditions = state.get(id).and_then(|object| object["status"]["conditions"].as_array());
            let of_status = conditions.into_iter().flatten().filter(|one| one["status"] == status);
            of_status.filter_map(|one| one["type"].as_str()).map(str::to_owned).collect()
        };
        self.samples.iter().any(|id| !with(state, id, "False").is_disjoint(&with(plain, id, "True")))
    }

    /// Whether a state is what is expected of what is desired. Where nobody has seen before what the operator comes to, it may be on its way,
    /// as long as there is less than of the samples as they are in their files; `has_written` says whether the program has written anything
    /// since it was asked.
    #[must_use]
    pub fn is_reached(&self, desired: &Desired, state: &State, has_written: bool) -> bool {
        match (self.expected.get(desired), desired) {
            (Some(expected), _) => differences(expected, state, &self.volatile).is_empty(),
            (None, Desired::Nothing) => !self.samples.iter().any(|id| state.contains_key(id)),
            (None, Desired::Samples) => has_written && self.not_ready(state).is_none(),
            (None, Desired::Changed(change)) => {
                let is_compared = !change.is_hostile && !self.unfulfilled.contains(desired);
                !is_compared || has_written && self.is_as_far(state)
            }
        }
    }

    /// Whether a state has all objects that there are of the samples as they are in their files, and the samples say as much of themselves.
    fn is_as_far(&self, state: &State) -> bool {
        let Some(plain) = self.expected.get(&Desired::Samples) else { return true };
        let has_status = |state: &State, id: &ObjectId| {
            state
                .get(id)
                .is_some_and(|object| object["status"].as_object().is_some_and(|all| !all.is_empty()))
        };
        plain.keys().all(|id| state.contains_key(id))
            && self.samples.iter().all(|id| !has_status(plain, id) || has_status(state, id))
            && self.is_as_ready(state)
    }

    /// Why a sample says that it is not ready, in words; none where it is, or says nothing.
    #[must_use]
    pub fn not_ready(&self, state: &State) -> Option<String> {
        let conditions =
            |object: &Value| object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_refusal = |one: &Value| {
            matches!(one["type"].as_str(), Some("Ready" | "Available"))
                && one["status"].is_string()
                && one["status"] != "True"
        };
        self.samples.iter().find_map(|id| {
            let one = conditions(state.get(id)?).into_iter().find(is_refusal)?;
            let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
            Some(format!(
                "{id}: {} is {}, {} ({})",
                text("type"),
                text("status"),
                text("reason"),
                text("message")
            ))
        })
    }
}

/// Whether a state has all objects of another, and more.
fn has_more(state: &State, other: &State) -> bool {
    state.len() > other.len() && other.keys().all(|id| state.contains_key(id))
}

/// The places of a status that tell of an error: fields with such a name, conditions of such a type that are true, and a phase.
fn errors_in(status: &Value) -> BTreeSet<String> {
    let names_error = |name: &str| {
        let name = name.to_lowercase();
        ["error", "fail", "invalid", "degraded"].iter().any(|word| name.contains(word))
    };
    let says = |value: &Value| *value == true || value.as_str().is_some_and(|text| !text.is_empty());
    let fields = status.as_object().into_iter().flatten();
    let fields =
        fields.filter(|(name, value)| names_error(name) && says(value)).map(|(name, _)| name.clone());
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let conditions = conditions.filter(|one| one["status"] == "True").filter_map(|one| one["type"].as_str());
    let phase = status["phase"].as_str().into_iter();
    fields.chain(conditions.chain(phase).filter(|text| names_error(text)).map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        change::Change,
        plan::{Plan, Step},
        planner,
        story::Passed,
    };

    fn story(plan: Plan, ready: &[bool]) -> Story {
        let passed = ready.iter().map(|ready| Passed {
            from: std::time::Duration::ZERO,
            until: std::time::Duration::ZERO,
            rest: Rest::Quiet,
            state: State::from([(ObjectId::new("g/pages", "a"), json!({"status": {"ready": ready}}))]),
            refused: None,
        });
        let steps = passed.collect();
        Story { plan, steps, writes: Vec::new(), requests: Vec::new(), lives: Vec::new() }
    }

    #[test]
    fn a_sample_that_says_that_it_is_not_ready_may_be_on_its_way() {
        let sample = ObjectId::new("g/pages", "a");
        let known = Known::of(vec![sample.clone()]);
        let state = |status: &str| {
            let condition =
                json!({"type": "Ready", "status": status, "reason": "Waits", "message": "for pods"});
            State::from([(sample.clone(), json!({"status": {"conditions": [condition]}}))])
        };
        assert_eq!(
            known.not_ready(&state("Unknown")).as_deref(),
            Some("pages.g a: Ready is Unknown, Waits (for pods)")
        );
        assert!(known.is_reached(&Desired::Samples, &state("True"), true));
        assert!(!known.is_reached(&Desired::Samples, &state("True"), false), "nothing was written for it");
        assert!(!known.is_reached(&Desired::Samples, &state("False"), true));
        assert!(known.is_reached(&Desired::Nothing, &State::new(), false));
        assert!(!known.is_reached(&Desired::Nothing, &state("False"), true), "it is there");
    }

    #[test]
    fn what_a_change_comes_to_is_on_its_way_as_long_as_there_is_less_than_of_the_plain_sample() {
        let (sample, child) = (ObjectId::new("g/pages", "a"), ObjectId::new("/configmaps", "a"));
        let done = || (sample.clone(), json!({"status": {"ready": true}}));
        let of_child = || (child.clone(), json!({"data": {}}));
        let mut known = Known::of(vec![sample.clone()]);
        known.expected.insert(Desired::Samples, [done(), of_child()].into());
        let change =
            |is_hostile| Desired::Changed(Change::one(0, "/spec/size", Some("2".to_owned()), is_hostile));
        let bare = || State::from([(sample.clone(), json!({}))]);
        assert!(!known.is_reached(&change(false), &bare(), false), "a slow program has not begun");
        assert!(!known.is_reached(&change(false), &[done()].into(), true), "an object is to come");
        assert!(!known.is_reached(&change(false), &[(sample.clone(), json!({})), of_child()].into(), true));
        let whole = State::from([done(), of_child()]);
        assert!(known.is_reached(&change(false), &whole, true));
        assert!(!known.is_reached(&change(false), &whole, false), "what was there before is no answer");
        assert!(known.is_reached(&change(true), &bare(), false), "nobody compares what it comes to");
        known.unfulfilled.insert(change(false));
        assert!(known.is_reached(&change(false), &bare(), false));
    }

    #[test]
    fn a_state_that_was_seen_too_early_is_replaced_by_one_with_more() {
        let (sample, child) = (ObjectId::new("g/pages", "a"), ObjectId::new("/configmaps", "a"));
        let change = Change::one(0, "/spec/size", Some("2".to_owned()), false);
        let mut known = Known::of(vec![sample.clone()]);
        let mut early = story(planner::fresh(&change), &[true]);
        known.learn(&early);
        let there = story(
            Plan::new(
                "change",
                [Step::new(Act::Change(Some(change.clone())), Desired::Changed(change.clone()))],
            ),
            &[true],
        );
        assert_eq!(known.doubted(&there), std::slice::from_ref(&change));
        assert_eq!(known.doubted(&there), [], "once");
        early.steps[0].state.insert(child.clone(), json!({}));
        known.learn(&early);
        assert!(known.expected[&Desired::Changed(change)].contains_key(&child));
        assert_eq!(known.volatile.places().count(), 0, "nothing differs by itself");
    }

    #[test]
    fn a_change_that_is_refused_in_words_is_not_fulfilled() {
        let sample = ObjectId::new("g/pages", "a");
        let state = |status: Value| State::from([(sample.clone(), json!({"status": status}))]);
        let mut known = Known::of(vec![sample.clone()]);
        known.expected.insert(Desired::Samples, state(json!({"errorMessage": ""})));
        assert!(known.has_new_error(&state(json!({"errorMessage": "Invalid html."}))));
        assert!(!known.has_new_error(&state(json!({"errorMessage": "", "areWeGood": true}))));
        let condition = |kind: &str, status: &str| json!({"conditions": [{"type": kind, "status": status}]});
        assert!(known.has_new_error(&state(condition("InvalidSpec", "True"))));
        assert!(!known.has_new_error(&state(condition("Degraded", "False"))));
        assert!(known.has_new_error(&state(json!({"phase": "Failed"}))));
        known.expected.insert(Desired::Samples, state(condition("Scheduled", "True")));
        assert!(known.has_lost_condition(&state(condition("Scheduled", "False"))));
        assert!(!known.has_lost_condition(&state(condition("Scheduled", "True"))));
    }

    #[test]
    fn what_comes_of_a_change_that_is_not_fulfilled_is_not_expected_of_others() {
        let mut known = Known::of(vec![ObjectId::new("g/pages", "a")]);
        known.learn(&story(Plan::new("plain", [Step::create()]), &[true]));
        let change = |value: &str| Change::one(0, "/spec/size", Some(value.to_owned()), false);
        known.learn(&story(planner::fresh(&change("2")), &[true]));
        known.learn(&story(planner::fresh(&change("nonsense")), &[false]));
        let desired = |value: &str| Desired::Changed(change(value));
        assert!(
            known.expected.contains_key(&desired("2")) && !known.expected.contains_key(&desired("nonsense"))
        );
        assert!(
            known.knows(&desired("2")) && known.knows(&desired("nonsense")) && !known.knows(&desired("3"))
        );
    }
}
