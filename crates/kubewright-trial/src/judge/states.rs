//! What the operator came to.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Scene, clock::is_by_the_clock, derived, writes};
use crate::{
    change::{Change, ENTRY, Setting},
    finding::{Check, Finding},
    plan::{Act, Desired},
    state::{ADDITION, CLAIMS, Difference, OF_CLUSTER, OWNER, State, differences, is_completed},
    story::{ObjectId, Request, Rest, Who, Write},
};

pub(super) fn judge(scene: &Scene<'_>) -> Vec<Finding> {
    if scene.passed.rest != Rest::Quiet || scene.step.act == Act::Wait {
        return Vec::new();
    }
    let mut found = Vec::new();
    found.extend(observed(scene));
    found.extend(removed_additions(scene));
    if scene.step.desired == Desired::Nothing {
        found.extend(left(scene));
    } else {
        found.extend(differing(scene));
    }
    found
}

fn finding(
    scene: &Scene<'_>,
    check: Check,
    subject: String,
    message: String,
    differences: Vec<Difference>,
) -> Finding {
    Finding { check, subject, message, differences, timeline: scene.timeline(), steps: None }
}

/// `observedGeneration` of the samples at rest.
fn observed(scene: &Scene<'_>) -> Vec<Finding> {
    let samples = scene.passed.state.iter().filter(|(id, _)| scene.known.samples.contains(id));
    // To be behind is what the field is for where the API server refuses what a change asks for.
    let is_refused = |one: &Request| scene.known.is_refused_for_what_it_says(one);
    let is_of_change = matches!(scene.step.desired, Desired::Changed(_));
    let may_be_behind = scene.is_hostile()
        || scene.known.unfulfilled.contains(&scene.step.desired)
        || is_of_change && scene.story.requests_in(scene.passed).any(is_refused);
    // So it is for what has been done once and for all.
    let samples = samples.filter(|(_, object)| !is_completed(&object["status"]));
    let behind = samples.filter(|(_, object)| is_behind(&object["status"]) && !may_be_behind);
    let told = behind.map(|(id, _)| {
        let message = format!(
            "at rest the status of {id} has an observedGeneration that is not the current generation"
        );
        finding(scene, Check::ObservedGeneration, id.resource(), message, Vec::new())
    });
    told.collect()
}

fn is_behind(status: &Value) -> bool {
    let is = |value: &Value| value == "<not current>";
    is(&status["observedGeneration"])
        || status["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| is(&one["observedGeneration"])))
}

/// What the trial has added to an object has to stay.
fn removed_additions(scene: &Scene<'_>) -> Vec<Finding> {
    let extended = scene.story.plan.steps.iter().filter_map(|step| match &step.act {
        Act::Extend(id) => Some(id),
        _ => None,
    });
    let mut found = Vec::new();
    for id in extended {
        let last =
            scene.story.writes.iter().rev().find(|write| write.id == *id && write.at <= scene.passed.until);
        let Some(last) = last.filter(|last| last.did != crate::story::Did::Delete) else { continue };
        let so_far = || scene.story.writes.iter().filter(|write| write.at <= scene.passed.until);
        let was_added = so_far().any(|write| {
            write.id == *id
                && write.by == Who::Trial
                && write.object["metadata"]["annotations"][ADDITION].is_string()
        });
        let metadata = &last.object["metadata"];
        let owners = metadata["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
        let there = [
            ("annotation", metadata["annotations"][ADDITION].is_string()),
            ("label", metadata["labels"][ADDITION].is_string()),
            ("owner reference", owners.iter().any(|owner| owner["name"] == OWNER)),
        ];
        // An object that was made anew does not have them.
        let is_new = !scene
            .story
            .writes
            .iter()
            .any(|write| write.by == Who::Trial && write.object["metadata"]["uid"] == metadata["uid"]);
        for (what, _) in there.into_iter().filter(|(_, is_there)| was_added && !is_new && !is_there) {
            let message = format!("the {what} that somebody has added to {id} is removed");
            found.push(finding(
                scene,
                Check::Additions,
                format!("{} {what}", id.resource()),
                message,
                Vec::new(),
            ));
        }
    }
    found
}

/// What is still there after the samples were deleted.
fn left(scene: &Scene<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let state = &scene.passed.state;
    for id in state.keys().filter(|id| scene.known.samples.contains(id)) {
        let finalizers = state[id]["metadata"]["finalizers"].to_string();
        let message = format!("{id} is deleted and still there: finalizers {finalizers}");
        found.push(finding(scene, Check::Deletion, id.resource(), message, Vec::new()));
    }
    let strangers = |id: &ObjectId| {
        scene.story.plan.steps.iter().any(|step| matches!(&step.act, Act::Occupy(other, _) if other == id))
    };
    let made = |id: &ObjectId| {
        scene.story.writes.iter().any(|write| {
            write.by == Who::Program
                && write.did == crate::story::Did::Create
                && write.id.collection == id.collection
        })
    };
    // Where the sample itself stays, so does what hangs on it.
    let stays = found.is_empty();
    let others =
        state.keys().filter(|id| stays && !scene.known.samples.contains(id) && !scene.known.own.contains(id));
    // A pod that is deleted has its grace period.
    let is_ending =
        |id: &ObjectId| id.collection == "/pods" && state[id]["metadata"]["deletionTimestamp"].is_string();
    for id in others.filter(|id| !strangers(id) && made(id) && !is_ending(id)) {
        let message = format!("the samples are gone, and {id} is still there");
        found.push(finding(scene, Check::Leak, id.resource(), message, Vec::new()));
    }
    // What hangs on a stranger's object stays with it.
    let is_comparable = found.is_empty() && !scene.has_stranger();
    if let (true, Some(expected)) = (is_comparable, scene.known.expected.get(&Desired::Nothing)) {
        let all = differences(expected, state, &scene.known.volatile);
        // What is gone that stayed in another run is no loss.
        let is_left = |one: &Difference| {
            let is_there = !one.field.is_empty() || one.reached.is_some();
            !strangers(&one.id) && is_there && !state.get(&one.id).is_some_and(|_| is_ending(&one.id))
        };
        let all: Vec<Difference> = all.into_iter().filter(is_left).collect();
        if let Some(first) = all.first() {
            let (subject, message) = (subject(first), first.text());
            found.push(finding(scene, Check::State, subject, message, all));
        }
    }
    found
}

/// `configmaps /data/text`.
pub(super) fn subject(difference: &Difference) -> String {
    let generic = |part: &str| if part.parse::<u32>().is_ok() { "*".to_owned() } else { part.to_owned() };
    let field: Vec<String> = difference.field.split('/').map(generic).collect();
    let what = match (&difference.expected, &difference.reached) {
        (_, None) => " missing",
        (None, _) => " too many",
        _ => "",
    };
    format!("{} {}{what}", difference.id.resource(), field.join("/"))
}

/// Where the state is not that of a run in which nothing went wrong.
fn differing(scene: &Scene<'_>) -> Vec<Finding> {
    let Some(expected) = scene.known.expected.get(&scene.step.desired) else { return Vec::new() };
    if scene.has_stranger() {
        return Vec::new();
    }
    let all = differences(expected, &scene.passed.state, &scene.known.volatile);
    let mut all = derived::without(all, expected, &scene.passed.state, &scene.known.volatile);
    // That has a check of its own.
    all.retain(|one| one.reached.as_deref() != Some("\"<not current>\""));
    let mut found = Vec::new();
    // What somebody changed in an earlier step, and stayed so, was told then.
    let changed_before = |one: &Difference| {
        scene.story.plan.steps.iter().take(scene.number()).any(|step| {
            matches!(&step.act, Act::ChangeObject(id, field, _) if one.id == *id && one.field == *field)
        })
    };
    all.retain(|one| !changed_before(one));
    // So has what is deleted because of an old state.
    let deleted: BTreeSet<&ObjectId> = writes::deleted_by_mistake(scene).map(|write| &write.id).collect();
    let is_deletion = |one: &Difference| one.field.is_empty() || one.field == "/metadata/deletionTimestamp";
    all.retain(|one| !(is_deletion(one) && deleted.contains(&one.id)));
    match scene.step.meddling() {
        Act::DeleteObject(id) => {
            let place = all.iter().position(|one| one.id == *id && one.field.is_empty());
            if let Some(place) = place.filter(|_| completed(scene).is_none()) {
                let one = all.remove(place);
                let message = format!("{id} was deleted by somebody, and does not come back");
                found.push(finding(scene, Check::Drift, id.resource(), message, vec![one]));
                // What follows of it, such as a status, is no finding of its own.
                all.clear();
            }
        }
        Act::ChangeObject(id, field, _) => {
            if let Some(place) = all.iter().position(|one| one.id == *id && one.field == *field) {
                let one = all.remove(place);
                let message = format!("{field} of {id} was changed by somebody, and stays so");
                found.push(finding(scene, Check::FieldDrift, subject(&one), message, vec![one]));
            }
        }
        _ => {}
    }
    if let Some(first) = all.first() {
        let first = all.iter().min_by_key(|one| rank(one)).unwrap_or(first);
        let (subject, message) = (subject(first) + &of_changes(scene, first), first.text());
        let (check, message) = match explanation(scene, expected, &all) {
            Some(explanation) => (Check::ExplainedState, format!("{message}; {explanation}")),
            None => (Check::State, message),
        };
        found.push(finding(scene, check, subject, message, all));
    }
    found
}

/// Which of several differences names a finding: what the operator has made, then what it wrote on it, then what the cluster made of
/// that, then what the operator says of itself; a hash of any of these comes last.
fn rank(difference: &Difference) -> u8 {
    match &*difference.field {
        _ if derived::is_hash(difference) => 4,
        field if field.starts_with("/status") => 3,
        _ if difference.id.collection == CLAIMS => 2,
        field if field.starts_with("/metadata") => 1,
        _ => 0,
    }
}

/// The fields of the samples that decide what is at a place, of those that were changed so far: ` of spec.size`. Changes of several fields that end
/// wrongly at one place have a cause each; what the operator says of itself, and a hash, follow of whatever is changed.
fn of_changes(scene: &Scene<'_>, place: &Difference) -> String {
    // What is made as it is time is there or not whatever is asked for.
    let is_decided = rank(place) < 3 && !is_by_the_clock(&place.id, scene.story);
    let Some(plain) = scene.known.expected.get(&Desired::Samples).filter(|_| is_decided) else {
        return String::new();
    };
    let is_below = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| !outer.is_empty() && rest.starts_with('/'))
    };
    let is_in = |one: &str, other: &str| one == other || is_below(one, other) || is_below(other, one);
    let steps = scene.story.plan.steps.iter().take(scene.number() + 1);
    let asked = steps.filter_map(|step| match &step.desired {
        Desired::Changed(change) => Some(&change.settings),
        _ => None,
    });
    let decides = |setting: &&Setting| {
        let alone = Change { settings: vec![(*setting).clone()], is_hostile: false };
        scene.known.expected.get(&Desired::Changed(alone)).is_some_and(|changed| {
            let all = differences(plain, changed, &scene.known.volatile);
            all.iter().any(|one| one.id == place.id && is_in(&one.field, &place.field))
        })
    };
    let fields: BTreeSet<String> = asked.flatten().filter(decides).map(Setting::path).collect();
    let fields: Vec<String> = fields.into_iter().collect();
    if fields.is_empty() { String::new() } else { format!(" of {}", fields.join(" and ")) }
}

/// Why a state need not be a bug, in words.
fn explanation(scene: &Scene<'_>, expected: &State, all: &[Difference]) -> Option<String> {
    // A mark that stays may wait for what a pod says; nothing else does, and what a user has asked for and taken back is no mark.
    let is_mark = |one: &Difference| {
        one.reached.is_some()
            && one.field.rsplit('/').next() != Some(ENTRY)
            && (one.field.starts_with("/metadata/annotations") || one.field.starts_with("/status/"))
    };
    let so_far = scene.story.requests.iter().filter(|request| request.at <= scene.passed.until);
    let is_unanswered =
        |request: &&Request| request.goes_to_pod() && request.code.is_none_or(|code| code >= 400);
    if let Some(request) = so_far.filter(|_| all.iter().all(is_mark)).find(is_unanswered) {
        return Some(format!("it asks pods, and those are simulated: {} was refused", request.text()));
    }
    if let Some(id) = completed(scene) {
        return Some(format!("{id} has completed, and what has completed does not run again"));
    }
    if let Some(id) = made_by_the_clock(scene, expected, all) {
        return Some(format!("{id} was made as it was time, and that differs from run to run"));
    }
    if let Some(id) = left_before(scene) {
        return Some(format!("{id} of the samples that were deleted before is still there"));
    }
    let is_reason = |one: &Difference| {
        one.field.starts_with("/status/conditions/")
            && ["/reason", "/message"].iter().any(|end| one.field.ends_with(end))
    };
    if all.iter().all(is_reason) {
        return Some("conditions say how they came to be what they are, and that is the same".to_owned());
    }
    let is_change = matches!(scene.story.plan.steps.first().map(|step| &step.act), Some(Act::Create(None)));
    if is_change && all.iter().all(|one| derived::is_earlier_version(one, expected)) {
        return Some("an earlier version of what is there stays, under a name with a hash".to_owned());
    }
    if let Some(job) = job_that_lost_its_pods(scene) {
        return Some(format!(
            "{job} has failed, as its pods went, and a Job that has failed does not start again"
        ));
    }
    // An operator that says no says so when it is asked. What goes wrong is no reason to stay behind.
    let is_asked = matches!(scene.step.act, Act::Change(_)) && !scene.story.plan.has_fault();
    let refused = scene.known.samples.iter().filter(|_| is_asked).find_map(|id| {
        let (before, now) = (expected.get(id)?, scene.passed.state.get(id)?);
        // What is so in some runs in which nothing goes wrong is no answer to the change.
        let is_volatile = |kind: &str| {
            let field = format!("/status/conditions/{kind}/status");
            scene.known.volatile.has(id, &field)
        };
        Some((id, refusal(&before["status"], &now["status"], &is_volatile)?))
    });
    refused.map(|(id, reason)| format!("the status of {id} says why: {reason}"))
}

/// A sample whose work was done once and for all.
fn completed<'a>(scene: &'a Scene<'_>) -> Option<&'a ObjectId> {
    let done =
        |id: &&ObjectId| scene.passed.state.get(*id).is_some_and(|object| is_completed(&object["status"]));
    scene.known.samples.iter().find(done)
}

/// What was made because it was time, where nothing else differs but what the samples say of themselves.
fn made_by_the_clock<'a>(
    scene: &Scene<'_>,
    expected: &'a State,
    all: &'a [Difference],
) -> Option<&'a ObjectId> {
    let is_it = |id: &&ObjectId| is_by_the_clock(id, scene.story);
    let is_status =
        |one: &Difference| scene.known.samples.contains(&one.id) && one.field.starts_with("/status");
    let differs = all.iter().map(|one| &one.id);
    let made = differs.chain(expected.keys()).find(is_it)?;
    all.iter().all(|one| is_it(&&one.id) || is_status(one)).then_some(made)
}

/// What always stays of samples that are deleted, where that was done before.
fn left_before<'a>(scene: &'a Scene<'_>) -> Option<&'a ObjectId> {
    let were_deleted =
        scene.story.plan.steps.iter().take(scene.number()).any(|step| step.act == Act::DeleteSamples);
    let mut left = scene.known.expected.get(&Desired::Nothing).filter(|_| were_deleted)?.iter();
    // Claims stay by design, and their StatefulSets know it.
    left.find(|(id, object)| object[OF_CLUSTER] != true && !scene.known.own.contains(id)).map(|(id, _)| id)
}

/// A Job that Kubernetes has called failed in a step in which somebody takes pods away.
fn job_that_lost_its_pods<'a>(scene: &'a Scene<'_>) -> Option<&'a ObjectId> {
    let takes_pods = match scene.step.meddling() {
        Act::LoseNode(..) => true,
        Act::DeleteObject(id) => matches!(&*id.collection, "/pods" | "batch/jobs"),
        _ => false,
    };
    let has_failed = |write: &&Write| {
        let conditions = write.object["status"]["conditions"].as_array();
        write.id.collection == "batch/jobs"
            && write.by == Who::Cluster
            && conditions.is_some_and(|all| {
                let is_failure =
                    |one: &Value| matches!(one["type"].as_str(), Some("Failed" | "FailureTarget"));
                all.iter().any(|one| is_failure(one) && one["status"] == "True")
            })
    };
    let mut written = scene.story.writes_in(scene.passed);
    written.find(has_failed).filter(|_| takes_pods).map(|write| &write.id)
}

/// The reason of a condition that is false or unknown, and is another where all is done.
fn refusal(before: &Value, now: &Value, is_volatile: &dyn Fn(&str) -> bool) -> Option<String> {
    let conditions = |status: &Value| status["conditions"].as_array().cloned().unwrap_or_default();
    let was_other = |now: &Value| {
        conditions(before).iter().any(|one| one["type"] == now["type"] && one["status"] != now["status"])
    };
    let is_refusal = |one: &&Value| {
        matches!(one["status"].as_str(), Some("False" | "Unknown"))
            && one["observedGeneration"] != "<not current>"
            && one["reason"].as_str().is_some_and(|reason| !reason.is_empty())
            && was_other(one)
            && one["type"].as_str().is_some_and(|kind| !is_volatile(kind))
    };
    let found = conditions(now);
    let one = found.iter().find(is_refusal)?;
    let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
    Some(format!("{} is {}, {} ({})", text("type"), text("status"), text("reason"), text("message")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::{
        known::Known,
        plan::{Plan, Step},
        state::State,
        story::{Passed, Story},
    };

    #[test]
    fn a_field_that_stays_changed_is_told_in_the_step_in_which_somebody_changed_it() {
        let id = ObjectId::new("/configmaps", "a/b");
        let state = |a: i32, b: i32| State::from([(id.clone(), json!({"data": {"a": a, "b": b}}))]);
        let change = |field: &str| {
            Step::new(Act::ChangeObject(id.clone(), field.to_owned(), Value::from(2)), Desired::Samples)
        };
        let plan = Plan::new("changed", [change("/data/a"), change("/data/b")]);
        let passed = |state| Passed {
            from: Duration::ZERO,
            until: Duration::ZERO,
            rest: Rest::Quiet,
            state,
            refused: None,
        };
        let steps = vec![passed(state(2, 1)), passed(state(2, 2))];
        let story = Story { plan, steps, writes: Vec::new(), requests: Vec::new(), lives: Vec::new() };
        let known = Known { expected: [(Desired::Samples, state(1, 1))].into(), ..Known::default() };
        let told: Vec<(Check, String)> = (0..2)
            .flat_map(|number| {
                let (step, passed) = (&story.plan.steps[number], &story.steps[number]);
                differing(&Scene { story: &story, step, passed, known: &known })
            })
            .map(|one| (one.check, one.subject))
            .collect();
        let drift = |field: &str| (Check::FieldDrift, format!("configmaps {field}"));
        assert_eq!(told, [drift("/data/a"), drift("/data/b")]);
    }

    #[test]
    fn a_place_that_two_fields_decide_is_told_for_each_of_them_and_another_once() {
        let id = ObjectId::new("apps/deployments", "a/b");
        let state = |image: &str, note: i32| {
            State::from([(id.clone(), json!({"spec": {"image": image, "note": note}}))])
        };
        let change = |field: &str| Change::one(0, field, Some("2".to_owned()), false);
        let desired = |field: &str| Desired::Changed(change(field));
        let subjects = |field: &str, reached: State| -> Vec<String> {
            let back = Step::new(Act::Change(None), Desired::Samples);
            let plan =
                Plan::new("change", [Step::new(Act::Change(Some(change(field))), desired(field)), back]);
            let passed = |state| Passed {
                from: Duration::ZERO,
                until: Duration::ZERO,
                rest: Rest::Quiet,
                state,
                refused: None,
            };
            let steps = vec![passed(State::new()), passed(reached)];
            let story = Story { plan, steps, writes: Vec::new(), requests: Vec::new(), lives: Vec::new() };
            let expected = [
                (Desired::Samples, state("a:1", 1)),
                (desired("/spec/image"), state("b:1", 1)),
                (desired("/spec/tag"), state("a:2", 1)),
            ];
            let known = Known { expected: expected.into(), ..Known::default() };
            let (step, passed) = (&story.plan.steps[1], &story.steps[1]);
            let found = differing(&Scene { story: &story, step, passed, known: &known });
            found.into_iter().map(|one| one.subject).collect()
        };
        let of = |field: &str| [format!("deployments.apps /spec/image of {field}")];
        assert_eq!(subjects("/spec/image", state("b:1", 1)), of("spec.image"));
        assert_eq!(subjects("/spec/tag", state("a:2", 1)), of("spec.tag"));
        assert_eq!(subjects("/spec/tag", state("a:1", 2)), ["deployments.apps /spec/note"]);
    }

    /// The checks that tell of a child that stays as it was after a change, where the status and a request are so.
    fn findings(status: Value, request: Option<Request>, plan: fn(Step) -> Step) -> Vec<Check> {
        findings_of(&json!({"data": {"size": 1}}), &json!({"data": {"size": 2}}), status, request, plan)
    }

    /// The same of a child that is to be one and stays another.
    fn findings_of(
        one: &Value,
        other: &Value,
        status: Value,
        request: Option<Request>,
        plan: fn(Step) -> Step,
    ) -> Vec<Check> {
        let (sample, child) = (ObjectId::new("g/pages", "a/p"), ObjectId::new("/configmaps", "a/b"));
        let state = |made: &Value, status: Value| {
            State::from([(sample.clone(), json!({"status": status})), (child.clone(), made.clone())])
        };
        let done = json!({"conditions": [{"type": "Done", "status": "True", "reason": "Yes"}]});
        let change = plan(Step::new(Act::Change(None), Desired::Samples));
        let passed = Passed {
            from: Duration::ZERO,
            until: Duration::from_secs(9),
            rest: Rest::Quiet,
            state: state(other, status),
            refused: None,
        };
        let story = Story {
            plan: Plan::new("change", [change]),
            steps: vec![passed],
            writes: Vec::new(),
            requests: request.into_iter().collect(),
            lives: Vec::new(),
        };
        let expected = [(Desired::Samples, state(one, done))].into();
        let known = Known { samples: vec![sample.clone()], expected, ..Known::default() };
        let (step, passed) = (&story.plan.steps[0], &story.steps[0]);
        let scene = Scene { story: &story, step, passed, known: &known };
        differing(&scene).into_iter().map(|one| one.check).collect()
    }

    fn same(step: Step) -> Step {
        step
    }

    #[test]
    fn an_operator_that_says_why_it_does_not_do_a_change_is_not_told_for_an_error() {
        let condition = |status: &str, kind: &str| json!({"conditions": [{"type": kind, "status": status, "reason": "Unsupported", "message": "no"}]});
        assert_eq!(findings(condition("False", "Done"), None, same), [Check::ExplainedState]);
        assert_eq!(findings(condition("True", "Done"), None, same), [Check::State]);
        assert_eq!(findings(condition("False", "Other"), None, same), [Check::State], "it is new");
        let killed = |step: Step| step.under(crate::plan::Disturbance::Kill(1));
        assert_eq!(findings(condition("False", "Done"), None, killed), [Check::State]);
    }

    #[test]
    fn a_mark_that_waits_for_a_simulated_pod_is_not_told_for_an_error() {
        let request = |subresource: &str, code| Request {
            at: Duration::from_secs(1),
            verb: "create".to_owned(),
            collection: "/pods".to_owned(),
            subresource: subresource.to_owned(),
            namespace: "a".to_owned(),
            patch: String::new(),
            name: "p-0".to_owned(),
            code: Some(code),
            struck: false,
        };
        let marked = json!({"metadata": {"annotations": {"waits": "yes"}}});
        let plain = json!({"metadata": {}});
        let done = || json!({"conditions": [{"type": "Done", "status": "True", "reason": "Yes"}]});
        let of = |one: &Value, other: &Value, request| findings_of(one, other, done(), Some(request), same);
        assert_eq!(of(&plain, &marked, request("exec", 400)), [Check::ExplainedState]);
        assert_eq!(of(&plain, &marked, request("exec", 101)), [Check::State]);
        assert_eq!(of(&plain, &marked, request("", 400)), [Check::State]);
        assert_eq!(of(&marked, &plain, request("exec", 400)), [Check::State], "what is missing");
        assert_eq!(findings(done(), Some(request("exec", 400)), same), [Check::State], "what was made");
    }

    #[test]
    fn what_was_made_as_it_was_time_is_no_error_where_nothing_else_differs() {
        let (sample, job) = (ObjectId::new("g/tabs", "a/t"), ObjectId::new("batch/jobs", "a/t-1795988460"));
        let other = ObjectId::new("/configmaps", "a/t");
        let checks = |more: Option<ObjectId>| -> Vec<Check> {
            let state = State::from([(sample.clone(), json!({"status": {"active": []}}))]);
            let known = Known {
                samples: vec![sample.clone()],
                expected: [(Desired::Samples, state)].into(),
                ..Known::default()
            };
            let mut reached = State::from([
                (sample.clone(), json!({"status": {"active": ["x"]}})),
                (job.clone(), json!({})),
            ]);
            reached.extend(more.map(|id| (id, json!({}))));
            let passed = Passed {
                from: Duration::ZERO,
                until: Duration::from_secs(9),
                rest: Rest::Quiet,
                state: reached,
                refused: None,
            };
            let created = Write {
                at: Duration::ZERO,
                id: sample.clone(),
                did: crate::story::Did::Create,
                by: Who::Trial,
                subresource: String::new(),
                object: json!({"metadata": {"creationTimestamp": "2026-11-29T21:40:10Z"}}),
            };
            let story = Story {
                plan: Plan::new("touch", [Step::new(Act::Touch, Desired::Samples)]),
                steps: vec![passed],
                writes: vec![created],
                requests: Vec::new(),
                lives: Vec::new(),
            };
            let (step, passed) = (&story.plan.steps[0], &story.steps[0]);
            differing(&Scene { story: &story, step, passed, known: &known })
                .into_iter()
                .map(|one| one.check)
                .collect()
        };
        assert_eq!(checks(None), [Check::ExplainedState]);
        assert_eq!(checks(Some(other.clone())), [Check::State]);
    }
}
