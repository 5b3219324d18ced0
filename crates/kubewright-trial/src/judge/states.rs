//! What the operator came to.

use serde_json::Value;

use super::Scene;
use crate::{
    finding::{Check, Finding},
    plan::{Act, Desired},
    state::{ADDITION, Difference, OWNER, differences},
    story::{ObjectId, Rest, Who},
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
    Finding { check, subject, message, differences, timeline: scene.timeline() }
}

/// `observedGeneration` of the samples at rest.
fn observed(scene: &Scene<'_>) -> Vec<Finding> {
    let samples = scene.passed.state.iter().filter(|(id, _)| scene.known.samples.contains(id));
    let behind = samples.filter(|(_, object)| is_behind(&object["status"]) && !scene.is_hostile());
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
    for id in others.filter(|id| !strangers(id) && made(id)) {
        let message = format!("the samples are gone, and {id} is still there");
        found.push(finding(scene, Check::Leak, id.resource(), message, Vec::new()));
    }
    // What hangs on a stranger's object stays with it.
    let is_comparable = found.is_empty() && !scene.has_stranger();
    if let (true, Some(expected)) = (is_comparable, scene.known.expected.get(&Desired::Nothing)) {
        let all = differences(expected, state, &scene.known.volatile);
        // What is gone that stayed in another run is no loss.
        let is_left =
            |one: &Difference| !strangers(&one.id) && (!one.field.is_empty() || one.reached.is_some());
        let all: Vec<Difference> = all.into_iter().filter(is_left).collect();
        if let Some(first) = all.first() {
            let (subject, message) = (subject(first), first.text());
            found.push(finding(scene, Check::State, subject, message, all));
        }
    }
    found
}

/// `configmaps /data/text`.
fn subject(difference: &Difference) -> String {
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
    let mut all = differences(expected, &scene.passed.state, &scene.known.volatile);
    // That has a check of its own.
    all.retain(|one| one.reached.as_deref() != Some("\"<not current>\""));
    let mut found = Vec::new();
    match &scene.step.act {
        Act::DeleteObject(id) => {
            if let Some(place) = all.iter().position(|one| one.id == *id && one.field.is_empty()) {
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
        // Told by what the operator made where there is some, not by what it says of itself.
        let first = all.iter().find(|one| !one.field.starts_with("/status")).unwrap_or(first);
        let (subject, message) = (subject(first), first.text());
        found.push(finding(scene, Check::State, subject, message, all));
    }
    found
}
