//! Makes plans of what an undisturbed run has shown: what can go wrong with this operator, one thing at a time.

mod surroundings;
mod together;
mod unseen;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    change::{Change, set},
    known::Known,
    plan::{Act, Desired, Disturbance, Fault, Plan, Step},
    state::OF_CLUSTER,
    story::{Did, LEASES, ObjectId, Passed, Request, Story, Who, Write, is_upkeep},
};

/// The most writes after each of which the program is killed, in one step.
const KILLS: u64 = 60;
/// The most objects of the operator that somebody meddles with.
const CHILDREN: usize = 12;
/// The most fields of one object that somebody changes.
const FIELDS: usize = 6;
/// How many fields of the samples are changed after somebody has added to an object.
const EXTENDED: usize = 4;
/// The most changes of the samples.
const CHANGES: usize = 60;
/// The most changes after which the program reads an old state.
const PAST: usize = 40;
/// The most writes after each of which the program is killed while it answers a change.
const KILLS_IN_CHANGE: u64 = 6;
/// How many plans of random faults there are of a kind.
const SEEDS: u64 = 2;

/// How the names of plans begin that change a sample there and back.
const CHANGE: &str = "change/";

/// A group of plans that one runs after the other: the later ones need what the earlier have shown.
pub type Group = Vec<Plan>;

/// The plan of a run in which nothing goes wrong: what the operator makes for itself, for the samples, and what it leaves.
#[must_use]
pub fn undisturbed(number: usize) -> Plan {
    let wait = Step::new(Act::Wait, Desired::Nothing);
    Plan::new(format!("undisturbed/{number}"), [wait, Step::create(), Step::delete()])
}

/// All plans, those that find most first: kinds of plans take turns, so that a trial that ends early has tried something of each.
#[must_use]
pub fn plans(known: &Known, story: &Story, changes: &[Change]) -> Vec<Group> {
    let children = children(known);
    let changes: Vec<Change> = changes.iter().take(CHANGES).cloned().collect();
    let kinds: [Vec<Group>; 15] = [
        restarts(),
        past(&changes),
        kills(story),
        replicas(story),
        single_failures(story),
        deleted(&children),
        changed_samples(&changes),
        faults(story, &changes),
        meddling(&children, story, &changes),
        strangers(known, story),
        unseen::plans(known, &children, &changes),
        together::plans(&changes),
        surroundings::nodes(known, story),
        surroundings::webhooks(known, &changes),
        surroundings::plans(&children, story),
    ];
    let longest = kinds.iter().map(Vec::len).max().unwrap_or_default();
    (0..longest).flat_map(|turn| kinds.iter().filter_map(move |kind| kind.get(turn).cloned())).collect()
}

fn single(plan: Plan) -> Group {
    vec![plan]
}

/// Started again at rest, looked at again, and deleted by a program that has not seen the beginning.
fn restarts() -> Vec<Group> {
    let restart = Step::new(Act::Restart, Desired::Samples);
    let touch = || Step::new(Act::Touch, Desired::Samples);
    vec![
        single(Plan::new("restart", [Step::create(), restart, Step::delete()])),
        single(Plan::new("touch", [Step::create(), touch(), touch(), Step::delete()])),
        single(Plan::new("again", [Step::create(), Step::delete(), Step::create(), Step::delete()])),
    ]
}

/// Started again with an old state before its eyes: samples that are being deleted and were made anew since, or that were changed and
/// changed back.
fn past(changes: &[Change]) -> Vec<Group> {
    let mut plans = vec![single(Plan::new(
        "past/deletion",
        [
            Step::create(),
            Step::delete(),
            Step::create(),
            Step::new(Act::RestartInThePast(1), Desired::Samples),
            Step::delete(),
        ],
    ))];
    let mut changes: Vec<&Change> = changes.iter().filter(|change| !change.is_hostile).collect();
    // What asks for less is what makes a program delete.
    let is_less = |change: &Change| {
        let values = change.settings.iter().map(|setting| setting.value.as_deref());
        values.into_iter().all(|value| matches!(value, None | Some("false" | "[]" | "{}" | "0")))
    };
    changes.sort_by_key(|change| !is_less(change));
    for change in changes.into_iter().take(PAST) {
        let there = Step::new(Act::Change(Some(change.clone())), Desired::Changed(change.clone()));
        let back = Step::new(Act::Change(None), Desired::Samples);
        let restart = Step::new(Act::RestartInThePast(1), Desired::Samples);
        plans.push(single(Plan::new(
            format!("past/{change}"),
            [Step::create(), there, back, restart, Step::delete()],
        )));
    }
    plans
}

/// How many writes the program has done in the step of an act.
fn writes(story: &Story, wanted: impl Fn(&Act) -> bool) -> u64 {
    let steps = story.plan.steps.iter().zip(&story.steps).filter(|(step, _)| wanted(&step.act));
    steps.map(|(_, passed)| writes_in(story, passed)).sum::<u64>().min(KILLS)
}

/// The same in one step.
fn writes_in(story: &Story, passed: &Passed) -> u64 {
    let is_work = |request: &&Request| request.writes() && request.is_work() && request.code.is_some();
    story.requests_in(passed).filter(is_work).count() as u64
}

/// Killed after each of its writes, and deleted while it is away.
fn kills(story: &Story) -> Vec<Group> {
    let at_create = writes(story, |act| matches!(act, Act::Create(_)));
    let at_delete = writes(story, |act| *act == Act::DeleteSamples);
    let mut plans = Vec::new();
    for number in 0..=at_create {
        let create = Step::create().under(Disturbance::Kill(number));
        plans.push(single(Plan::new(format!("kill/create/{number}"), [create, Step::delete()])));
        if number > 0 {
            let away = Disturbance::KillAnd(number, Box::new(Act::DeleteSamples));
            let create = Step::new(Act::Create(None), Desired::Nothing).under(away);
            plans.push(single(Plan::new(format!("kill/create/{number}/delete"), [create])));
        }
    }
    for number in 0..=at_delete {
        let delete = Step::delete().under(Disturbance::Kill(number));
        plans.push(single(Plan::new(format!("kill/delete/{number}"), [Step::create(), delete])));
    }
    plans
}

/// Killed after each write by which it answers a change, and away while the sample is changed where that makes or removes an object: made of
/// the story of that change without a fault.
#[must_use]
pub fn kills_in_change(story: &Story) -> Vec<Plan> {
    if !story.plan.name.starts_with(CHANGE) {
        // Others change the samples on their way; the same kills would be tried for each of them.
        return Vec::new();
    }
    let steps = story.plan.steps.iter();
    let there =
        steps.filter(|step| step.disturbance.is_none()).find_map(|step| match (&step.act, &step.desired) {
            (Act::Change(Some(change)), Desired::Changed(_)) if !change.is_hostile => Some((step, change)),
            _ => None,
        });
    let Some((step, change)) = there else { return Vec::new() };
    // It is asked for twice, and the first time is the one that is tried.
    let answer = story.plan.steps.iter().zip(&story.steps).find(|(one, _)| one.act == step.act);
    let count = answer.map_or(0, |(_, passed)| writes_in(story, passed)).min(KILLS_IN_CHANGE);
    let plan = |number| {
        let there = step.clone().under(Disturbance::Kill(number));
        let back = Step::new(Act::Change(None), Desired::Samples);
        Plan::new(format!("kill/{change}/{number}"), [Step::create(), there, back, Step::delete()])
    };
    let mut plans: Vec<Plan> = (1..=count).map(plan).collect();
    if makes_or_removes(story) {
        let away = || Disturbance::KillAnd(0, Box::new(Act::Wait));
        let back = Step::new(Act::Change(None), Desired::Samples).under(away());
        let there = step.clone().under(away());
        plans.push(Plan::new(format!("kill/{change}/0"), [Step::create(), there, back, Step::delete()]));
    }
    plans
}

/// Whether the program creates or deletes an object when a sample is changed, there or back.
fn makes_or_removes(story: &Story) -> bool {
    let steps = story.plan.steps.iter().zip(&story.steps);
    let mut changes = steps.filter(|(step, _)| matches!(step.act, Act::Change(_)));
    changes.any(|(_, passed)| {
        let is_it = |write: &Write| {
            write.by == Who::Program && write.did != Did::Update && !is_upkeep(&write.id.collection)
        };
        story.writes_in(passed).any(is_it)
    })
}

/// Whether a plan's story gives rise to a plan of that name.
#[must_use]
pub fn gives_rise(plan: &Plan, name: &str) -> bool {
    let of_change = name.strip_prefix("kill/").and_then(|rest| rest.rsplit_once('/'));
    of_change.is_some_and(|(change, _)| plan.name.strip_prefix(CHANGE) == Some(change))
}

/// Whether two replicas of the program run in a plan.
#[must_use]
pub fn has_replica(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| matches!(step.disturbance, Some(Disturbance::TakeOver(_))))
}

/// A second replica takes over from one that was killed: where the program takes a Lease.
fn replicas(story: &Story) -> Vec<Group> {
    if !leads(story) {
        return Vec::new();
    }
    let at_create = writes(story, |act| matches!(act, Act::Create(_)));
    let mut numbers = vec![0, 1, at_create / 2, at_create];
    numbers.dedup();
    let plan = |number| {
        let create = Step::create().under(Disturbance::TakeOver(number));
        single(Plan::new(format!("replica/{number}"), [create, Step::delete()]))
    };
    numbers.into_iter().map(plan).collect()
}

/// Whether the program takes a Lease.
fn leads(story: &Story) -> bool {
    story.writes.iter().any(|write| write.id.collection == LEASES && write.by == Who::Program)
}

/// Each of its writes fails once, or is done and not answered.
fn single_failures(story: &Story) -> Vec<Group> {
    let at_create = writes(story, |act| matches!(act, Act::Create(_)));
    let at_delete = writes(story, |act| *act == Act::DeleteSamples);
    let mut plans = Vec::new();
    for (name, fault) in [("fail", Fault::Error), ("unanswered", Fault::LateAnswer)] {
        for number in 1..=at_create {
            let create = Step::create().under(Disturbance::OneWrite(fault, number));
            plans.push(single(Plan::new(format!("{name}/create/{number}"), [create, Step::delete()])));
        }
        for number in 1..=at_delete {
            let delete = Step::delete().under(Disturbance::OneWrite(fault, number));
            plans.push(single(Plan::new(format!("{name}/delete/{number}"), [Step::create(), delete])));
        }
    }
    plans
}

/// What the operator has made of the samples.
fn children(known: &Known) -> Vec<(ObjectId, Value)> {
    let Some(state) = known.expected.get(&Desired::Samples) else { return Vec::new() };
    let is_child = |id: &ObjectId, object: &Value| {
        !known.samples.contains(id)
            && !known.own.contains(id)
            // Claims that a StatefulSet has made are its.
            && object[OF_CLUSTER] != true
            // Its name is another in each run.
            && !object["metadata"]["generateName"].is_string()
    };
    let children = state.iter().filter(|(id, object)| is_child(id, object));
    children.take(CHILDREN).map(|(id, object)| (id.clone(), object.clone())).collect()
}

/// Each object that it made is deleted by somebody: at rest, and before the samples go.
fn deleted(children: &[(ObjectId, Value)]) -> Vec<Group> {
    let mut plans = Vec::new();
    for (id, _) in children {
        let delete = Step::new(Act::DeleteObject(id.clone()), Desired::Samples);
        let name = name(id);
        plans.push(single(Plan::new(format!("deleted/{name}"), [Step::create(), delete, Step::delete()])));
        let away = Disturbance::KillAnd(0, Box::new(Act::DeleteObject(id.clone())));
        let delete = Step::delete().under(away);
        plans.push(single(Plan::new(format!("deleted/{name}/before-the-end"), [Step::create(), delete])));
    }
    plans
}

/// `configmaps/default/web`.
fn name(id: &ObjectId) -> String {
    format!("{}/{}", id.resource(), id.key)
}

/// Each change of the samples: there by another way, and back; and there once more, as some answer a change once alone.
fn changed_samples(changes: &[Change]) -> Vec<Group> {
    let group = |change: &Change| {
        let desired = Desired::Changed(change.clone());
        let there = || Step::new(Act::Change(Some(change.clone())), desired.clone());
        let back = Step::new(Act::Change(None), Desired::Samples);
        let mut steps = vec![Step::create(), there(), back];
        // What comes of nonsense is not compared, the second time as the first.
        steps.extend((!change.is_hostile).then(there));
        steps.push(Step::delete());
        let all = Plan::new(format!("{CHANGE}{change}"), steps);
        if change.is_hostile {
            return single(all);
        }
        vec![fresh(change), all]
    };
    changes.iter().map(group).collect()
}

/// The plan that shows what the operator comes to when it is asked for a change from the start.
#[must_use]
pub fn fresh(change: &Change) -> Plan {
    let create = Step::new(Act::Create(Some(change.clone())), Desired::Changed(change.clone()));
    Plan::new(format!("fresh/{change}"), [create, Step::delete()])
}

/// The collections that the program writes.
fn written(story: &Story) -> BTreeSet<String> {
    let is_work = |write: &&Write| write.by == Who::Program && !is_upkeep(&write.id.collection);
    story.writes.iter().filter(is_work).map(|write| write.id.collection.clone()).collect()
}

/// Faults of the API server: on the writes and the watches of each resource without exception, and on all requests by chance.
fn faults(story: &Story, changes: &[Change]) -> Vec<Group> {
    let mut plans = Vec::new();
    let at_both_ends = |name: String, disturbance: &Disturbance| {
        let steps = [Step::create().under(disturbance.clone()), Step::delete().under(disturbance.clone())];
        single(Plan::new(name, steps))
    };
    for collection in written(story) {
        let resource = crate::story::resource(&collection);
        let fault = |fault| Disturbance::Fault(fault, Some(collection.clone()), None);
        for kind in [Fault::StaleWatch, Fault::Error] {
            plans.push(at_both_ends(format!("fault/{}/{resource}", kind.name()), &fault(kind)));
        }
        if let Some(change) = simplest(changes) {
            let there = Step::new(Act::Change(Some(change.clone())), Desired::Changed(change.clone()));
            let steps = [
                Step::create(),
                there.under(fault(Fault::Error)),
                Step::new(Act::Change(None), Desired::Samples),
            ];
            plans.push(single(Plan::new(format!("fault/error/{resource}/change"), steps)));
        }
    }
    for seed in 0..SEEDS {
        for fault in Fault::ALL {
            let by_chance = matches!(
                fault,
                Fault::Conflict
                    | Fault::Throttle
                    | Fault::Error
                    | Fault::Lost
                    | Fault::LateAnswer
                    | Fault::DropWatch
            );
            let name = match by_chance {
                true => format!("fault/{}/{seed}", fault.name()),
                false => format!("fault/{}", fault.name()),
            };
            let fits = fault != Fault::LostLease || leads(story);
            if fits && (by_chance || seed == 0) {
                plans.push(at_both_ends(name, &Disturbance::Fault(fault, None, by_chance.then_some(seed))));
            }
        }
    }
    plans
}

/// A change that somebody may want, rather one that sets something than one that takes it away.
fn simplest(changes: &[Change]) -> Option<&Change> {
    changes.iter().filter(|change| !change.is_hostile).min_by_key(|change| change.takes_away())
}

/// A change that somebody may want of each of the first fields.
fn of_each_field(changes: &[Change]) -> Vec<&Change> {
    let wanted = changes.iter().filter(|change| !change.is_hostile && !change.takes_away());
    let mut first: Vec<&Change> = Vec::new();
    for change in wanted {
        if first.iter().all(|one| !one.is_of_same_fields(change)) {
            first.push(change);
        }
    }
    first.truncate(EXTENDED);
    first
}

/// Somebody adds to its objects, and a user changes the sample afterwards.
fn meddling(children: &[(ObjectId, Value)], story: &Story, changes: &[Change]) -> Vec<Group> {
    let mut plans = Vec::new();
    let changes = of_each_field(changes);
    for (id, object) in children {
        let mut steps = vec![Step::create(), Step::new(Act::Extend(id.clone()), Desired::Samples)];
        for change in &changes {
            let desired = Desired::Changed((*change).clone());
            steps.push(Step::new(Act::Change(Some((*change).clone())), desired));
        }
        if !changes.is_empty() {
            steps.push(Step::new(Act::Change(None), Desired::Samples));
        }
        plans.push(single(Plan::new(format!("extended/{}", name(id)), steps)));
        let fields = owned(id, object, story);
        if !fields.is_empty() {
            let set =
                |(field, value)| Step::new(Act::ChangeObject(id.clone(), field, value), Desired::Samples);
            let steps = std::iter::once(Step::create()).chain(fields.into_iter().map(set));
            plans.push(single(Plan::new(format!("changed/{}", name(id)), steps)));
        }
    }
    plans
}

/// Fields of an object that the program itself has set, with another value for each: scalars, by what its managers own.
fn owned(id: &ObjectId, object: &Value, story: &Story) -> Vec<(String, Value)> {
    let made = story
        .writes
        .iter()
        .find(|write| write.id == *id && write.by == Who::Program && write.did == Did::Create);
    let Some(made) = made else { return Vec::new() };
    let mut fields = Vec::new();
    for entry in made.object["metadata"]["managedFields"].as_array().into_iter().flatten() {
        for part in ["spec", "data"] {
            let owned = &entry["fieldsV1"][format!("f:{part}")];
            scalars(owned, &object[part], &format!("/{part}"), &mut fields);
        }
    }
    fields.truncate(FIELDS);
    if id.collection == "/secrets" {
        // Contents are base64 there.
        let contents = fields.iter_mut().filter(|(field, _)| field.starts_with("/data/"));
        contents.for_each(|(_, value)| *value = "Y2hhbmdlZA==".into());
    }
    fields
}

fn scalars(owned: &Value, value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    let Some(owned) = owned.as_object() else { return };
    if owned.is_empty() {
        let other = match value {
            Value::Bool(value) => json!(!value),
            Value::Number(number) => json!(number.as_i64().map_or(1, |number| number + 1)),
            Value::String(text) if path.starts_with("/data") => json!(format!("{text} (changed)")),
            Value::String(text) => json!(format!("{text}x")),
            _ => return,
        };
        found.push((path.to_owned(), other));
        return;
    }
    for (name, owned) in owned {
        if let Some(name) = name.strip_prefix("f:") {
            let field = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            scalars(owned, &value[name], &field, found);
        } else if let (Some(key), Some(items)) = (name.strip_prefix("k:"), value.as_array()) {
            let Ok(Value::Object(key)) = serde_json::from_str::<Value>(key) else { continue };
            let place = items.iter().position(|item| key.iter().all(|(name, value)| item[name] == *value));
            if let Some(place) = place {
                scalars(owned, &items[place], &format!("{path}/{place}"), found);
            }
        }
    }
}

/// Somebody else has objects under the names that the operator will want.
fn strangers(known: &Known, story: &Story) -> Vec<Group> {
    let is_created = |id: &ObjectId, object: &Value| {
        let is_theirs =
            |write: &Write| write.id == *id && write.by == Who::Program && write.did == Did::Create;
        // Of an object without an owner a program can tell by its name alone whose it is.
        object["metadata"]["ownerReferences"].is_array() && story.writes.iter().any(is_theirs)
    };
    let plan = |(id, object): (ObjectId, Value)| {
        let stranger = stranger(&object);
        let occupy = Step::new(Act::Occupy(id.clone(), stranger), Desired::Nothing);
        single(Plan::new(format!("occupied/{}", name(&id)), [occupy, Step::create(), Step::delete()]))
    };
    // Whoever makes an object of a kind of the operator's own asks it for something: that is no stranger.
    let is_no_wish = |id: &ObjectId| !known.defined.contains(&id.collection);
    let wanted = children(known).into_iter().filter(|(id, object)| is_no_wish(id) && is_created(id, object));
    wanted.map(plan).collect()
}

/// An object of somebody else: valid as the operator's own, and not its own.
fn stranger(object: &Value) -> Value {
    let mut stranger = object.clone();
    for field in [
        "/metadata/ownerReferences",
        "/metadata/labels",
        "/metadata/annotations",
        "/metadata/finalizers",
        "/status",
    ] {
        set(&mut stranger, field, None);
    }
    set(&mut stranger, "/metadata/labels/trial.kubewright.dev~1of", Some("somebody-else".into()));
    if stranger["kind"] == "Job" {
        // A Job's selector and the labels of its pods are given to it, and those of another are refused.
        set(&mut stranger, "/spec/selector", None);
        for label in [
            "controller-uid",
            "batch.kubernetes.io~1controller-uid",
            "job-name",
            "batch.kubernetes.io~1job-name",
        ] {
            set(&mut stranger, &format!("/spec/template/metadata/labels/{label}"), None);
        }
    }
    if let Some((key, _)) = stranger["data"].as_object().and_then(|data| data.iter().next()) {
        let key = format!("/data/{}", key.replace('~', "~0").replace('/', "~1"));
        set(&mut stranger, &key, Some("c29tZWJvZHktZWxzZQ==".into()));
    }
    stranger
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_the_program_owns_are_changed_and_no_others() {
        let owned = json!({"f:replicas": {}, "f:template": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}}});
        let value = json!({"replicas": 2, "paused": false, "template": {"containers": [{"name": "b"}, {"name": "a", "image": "x:1"}]}});
        let mut found = Vec::new();
        scalars(&owned, &value, "/spec", &mut found);
        assert_eq!(
            found,
            [
                ("/spec/replicas".to_owned(), json!(3)),
                ("/spec/template/containers/1/image".to_owned(), json!("x:1x"))
            ]
        );
    }

    #[test]
    fn what_a_built_in_controller_has_made_is_no_child_of_the_operator() {
        let claim = |name: &str| ObjectId::new("/persistentvolumeclaims", name);
        let state = [(claim("a/theirs"), json!({OF_CLUSTER: true})), (claim("a/own"), json!({}))];
        let known = Known { expected: [(Desired::Samples, state.into())].into(), ..Known::default() };
        let found: Vec<ObjectId> = children(&known).into_iter().map(|(id, _)| id).collect();
        assert_eq!(found, [claim("a/own")]);
    }

    #[test]
    fn a_stranger_has_no_owner_and_other_data() {
        let object = json!({"kind": "ConfigMap", "metadata": {"name": "a", "ownerReferences": [{}], "labels": {"app": "x"}}, "data": {"k": "v"}});
        let stranger = stranger(&object);
        assert_eq!(
            stranger["metadata"],
            json!({"name": "a", "labels": {"trial.kubewright.dev/of": "somebody-else"}})
        );
        assert_ne!(stranger["data"]["k"], "v");
    }

    #[test]
    fn a_change_that_is_wanted_is_tried_from_the_start_first() {
        let change = |is_hostile| Change::one(0, "/spec/size", Some("2".to_owned()), is_hostile);
        let names = |is_hostile| -> Vec<String> {
            changed_samples(&[change(is_hostile)]).concat().into_iter().map(|plan| plan.name).collect()
        };
        assert_eq!(names(false), ["fresh/spec.size=2", "change/spec.size=2"]);
        assert_eq!(names(true), ["change/spec.size=2"]);
    }

    #[test]
    fn a_change_is_asked_for_twice_where_its_end_is_compared() {
        let acts = |is_hostile| -> Vec<String> {
            let change = Change::one(0, "/spec/size", Some("2".to_owned()), is_hostile);
            let plan = changed_samples(&[change]).concat().pop().expect("a plan");
            plan.steps.iter().map(|step| step.act.to_string()).collect()
        };
        let (wanted, nonsense) = (acts(false), acts(true));
        assert_eq!((wanted.len(), nonsense.len()), (5, 4));
        assert_eq!(wanted[1], wanted[3]);
        assert!(wanted[2] == "the sample is changed back" && nonsense[2] == wanted[2]);
    }

    #[test]
    fn what_answers_a_change_is_killed_after_each_of_its_writes() {
        let change = Change::one(0, "/spec/size", Some("2".to_owned()), false);
        let plan = changed_samples(std::slice::from_ref(&change)).concat().pop().expect("a plan");
        let moment = std::time::Duration::from_secs;
        let request = |at| Request {
            at: moment(at),
            verb: "update".to_owned(),
            collection: "/configmaps".to_owned(),
            subresource: String::new(),
            namespace: String::new(),
            patch: String::new(),
            name: "a".to_owned(),
            code: Some(200),
            struck: false,
        };
        let passed = |step: u64| crate::story::Passed {
            from: moment(10 * step),
            until: moment(10 * step + 9),
            rest: crate::story::Rest::Quiet,
            state: crate::state::State::new(),
            refused: None,
        };
        let steps = (0..5).map(passed).collect();
        let requests = [1, 11, 12, 21, 31].map(request).to_vec();
        let story = Story { plan: plan.clone(), steps, writes: Vec::new(), requests, lives: Vec::new() };
        let names: Vec<String> = kills_in_change(&story).into_iter().map(|plan| plan.name).collect();
        assert_eq!(names, ["kill/spec.size=2/1", "kill/spec.size=2/2"]);
        let object = Write {
            at: moment(22),
            id: ObjectId::new("/configmaps", "a"),
            did: Did::Delete,
            by: Who::Program,
            subresource: String::new(),
            object: Value::Null,
        };
        let removed = Story { writes: vec![object], ..story.clone() };
        let last = kills_in_change(&removed).pop().expect("a plan");
        assert_eq!((&*last.name, last.steps.len()), ("kill/spec.size=2/0", 4));
        assert!(names.iter().all(|name| gives_rise(&plan, name)) && !gives_rise(&plan, "kill/create/1"));
        let past = Plan { name: "past/spec.size=2".to_owned(), ..plan };
        assert_eq!(kills_in_change(&Story { plan: past, ..story }), Vec::new());
    }
}
