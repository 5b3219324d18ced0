//! What is known of an operator: what it comes to when nothing goes wrong.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
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
    /// What the operator makes for itself, without a sample.
    pub own: BTreeSet<ObjectId>,
    /// The collections of samples that it does not watch.
    pub unwatched: BTreeSet<String>,
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
        for (step, passed) in story.plan.steps.iter().zip(&story.steps) {
            if passed.rest != Rest::Quiet || passed.refused.is_some() {
                continue;
            }
            if step.act == Act::Wait {
                self.own.extend(passed.state.keys().filter(|id| !self.samples.contains(id)).cloned());
                continue;
            }
            let is_refused = |request: &Request| request.writes() && matches!(request.code, Some(400 | 422));
            let is_fulfilled = self.is_as_ready(&passed.state)
                && !self.has_new_error(&passed.state)
                && !self.has_lost_condition(&passed.state)
                && !story.requests_in(passed).any(is_refused);
            if matches!(step.desired, Desired::Changed(_)) && !is_fulfilled {
                self.unfulfilled.insert(step.desired.clone());
                continue;
            }
            match self.expected.get(&step.desired) {
                Some(known) => self.volatile.learn(known, &passed.state),
                None => drop(self.expected.insert(step.desired.clone(), passed.state.clone())),
            }
        }
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

    /// Whether a state is what is expected of what is desired; so, too, where nothing is.
    #[must_use]
    pub fn is_reached(&self, desired: &Desired, state: &State) -> bool {
        match self.expected.get(desired) {
            Some(expected) => differences(expected, state, &self.volatile).is_empty(),
            // What nobody has seen before may be on its way.
            None => *desired != Desired::Samples || self.not_ready(state).is_none(),
        }
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
        assert!(known.is_reached(&Desired::Samples, &state("True")));
        assert!(!known.is_reached(&Desired::Samples, &state("False")));
        assert!(known.is_reached(&Desired::Nothing, &state("False")));
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
