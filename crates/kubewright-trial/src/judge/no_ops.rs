//! Writes of what is there already.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    Scene,
    requests::{by, kind_of},
};
use crate::{
    finding::{Check, Finding},
    plan::{Act, Step},
    story::{Did, ObjectId, Passed, Request, Story, Who, Write, resource},
};

/// Writes that change nothing each time that the operator is touched: when it is started anew, or looks at its samples once more. Told in
/// the last of these steps. That it applies at its start is no such write: it cannot know otherwise whether all is as it would apply it.
pub(super) fn judge(scene: &Scene<'_>) -> Vec<Finding> {
    let steps = scene.story.plan.steps.iter().zip(&scene.story.steps);
    let touched: Vec<(&Step, &Passed)> = steps.filter(|(step, _)| is_touched(step)).collect();
    if touched.last().is_none_or(|(_, last)| !std::ptr::eq(*last, scene.passed)) {
        return Vec::new();
    }
    let by_step: Vec<BTreeMap<String, Idle>> =
        touched.iter().map(|(step, passed)| idle(scene.story, step, passed)).collect();
    let Some(last) = by_step.last() else { return Vec::new() };
    let each_time: Vec<(&String, &Idle)> =
        last.iter().filter(|(kind, _)| by_step.iter().all(|step| step.contains_key(*kind))).collect();
    if each_time.is_empty() {
        return Vec::new();
    }
    // One pass writes them all: they have one cause more often than several.
    let kinds: Vec<&str> = each_time.iter().map(|(kind, _)| kind.as_str()).collect();
    let counts: Vec<String> = each_time
        .iter()
        .map(|(_, idle)| format!("{} of {} of {}", idle.nothing, idle.all, idle.of))
        .collect();
    vec![Finding {
        check: Check::NoOp,
        subject: kinds.join(", "),
        message: format!(
            "each time that {}, these writes change nothing: {}",
            scene.step.act,
            counts.join(", ")
        ),
        differences: Vec::new(),
        timeline: scene.timeline(),
        steps: None,
    }]
}

fn is_touched(step: &Step) -> bool {
    matches!(step.act, Act::Restart | Act::Touch) && step.disturbance.is_none()
}

/// Writes of one kind in a step.
struct Idle {
    all: usize,
    /// How many of them change nothing.
    nothing: usize,
    /// `configmaps/status`.
    of: String,
}

/// By the kind of request: where more was answered with success than was changed.
fn idle(story: &Story, step: &Step, passed: &Passed) -> BTreeMap<String, Idle> {
    let is_first_look = |one: &Request| step.act == Act::Restart && one.patch == "apply";
    let is_done = |one: &&Request| {
        let is_write = one.is_work() && one.writes() && one.verb != "delete" && !is_first_look(one);
        is_write && one.code.is_some_and(|code| code < 300)
    };
    let key = |one: &Request| format!("{} {}", one.collection, one.subresource);
    let changed = changed(story, passed);
    let mut found = BTreeMap::new();
    for (key, done) in by(story.requests_in(passed).filter(is_done), key) {
        let count = changed.iter().filter(|write| {
            format!("{} {}", write.id.collection, write.subresource) == key && write.did != Did::Delete
        });
        let nothing = done.len().saturating_sub(count.count());
        if nothing > 0 {
            let one = done[0];
            let part =
                if one.subresource.is_empty() { String::new() } else { format!("/{}", one.subresource) };
            let of = format!("{}{part}", resource(&one.collection));
            found.insert(kind_of(one), Idle { all: done.len(), nothing, of });
        }
    }
    found
}

/// The program's writes in a step that change more than who manages which field since when.
fn changed<'a>(story: &'a Story, passed: &Passed) -> Vec<&'a Write> {
    let mut last: BTreeMap<&ObjectId, &Write> = BTreeMap::new();
    let mut found = Vec::new();
    for write in &story.writes {
        let before = last.insert(&write.id, write);
        let is_meant = write.by == Who::Program && write.at >= passed.from && write.at <= passed.until;
        let is_same =
            before.is_some_and(|before| before.did != Did::Delete && is_same(&before.object, &write.object));
        if is_meant && !(write.did == Did::Update && is_same) {
            found.push(write);
        }
    }
    found
}

/// Whether two objects are alike but for what the server notes of each write.
fn is_same(one: &Value, other: &Value) -> bool {
    let fields = |object: &Value, without: &[&str]| -> BTreeSet<(String, String)> {
        let fields = object.as_object().into_iter().flatten();
        let kept = fields.filter(|(name, _)| !without.contains(&name.as_str()));
        kept.map(|(name, value)| (name.clone(), value.to_string())).collect()
    };
    fields(one, &["metadata"]) == fields(other, &["metadata"])
        && fields(&one["metadata"], &["managedFields", "resourceVersion"])
            == fields(&other["metadata"], &["managedFields", "resourceVersion"])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::{
        known::Known,
        plan::{Desired, Plan},
        state::State,
        story::Rest,
    };

    fn write(at: u64, object: Value) -> Write {
        Write {
            at: Duration::from_secs(at),
            id: ObjectId::new("/configmaps", "a/b"),
            did: if at == 0 { Did::Create } else { Did::Update },
            by: Who::Program,
            subresource: String::new(),
            object,
        }
    }

    fn request(at: u64) -> Request {
        Request {
            at: Duration::from_secs(at),
            verb: "update".to_owned(),
            collection: "/configmaps".to_owned(),
            subresource: String::new(),
            namespace: "a".to_owned(),
            patch: String::new(),
            name: "b".to_owned(),
            code: Some(200),
            struck: false,
        }
    }

    /// How many findings two touches give, with these requests and writes.
    fn found(requests: &[u64], writes: Vec<Write>) -> usize {
        let requests: Vec<Request> = requests.iter().map(|at| request(*at)).collect();
        found_in(&Act::Touch, requests, writes)
    }

    /// How many two steps give.
    fn found_in(act: &Act, requests: Vec<Request>, writes: Vec<Write>) -> usize {
        let touch = || Step::new(act.clone(), Desired::Samples);
        let passed = |step: u64| Passed {
            from: Duration::from_secs(10 * step),
            until: Duration::from_secs(10 * step + 9),
            rest: Rest::Quiet,
            state: State::new(),
            refused: None,
        };
        let story = Story {
            plan: Plan::new("touch", [Step::create(), touch(), touch()]),
            steps: (0..3).map(passed).collect(),
            writes,
            requests,
            lives: Vec::new(),
        };
        let known = Known::default();
        let steps = story.plan.steps.iter().zip(&story.steps);
        let scenes = steps.map(|(step, passed)| Scene { story: &story, step, passed, known: &known });
        scenes.map(|scene| judge(&scene).len()).sum()
    }

    #[test]
    fn what_is_not_stored_is_told_where_it_comes_each_time() {
        let made = || write(0, json!({"data": 1}));
        assert_eq!(found(&[11, 21], vec![made()]), 1);
        assert_eq!(found(&[11], vec![made()]), 0, "the second time it is left");
        assert_eq!(found(&[11, 21], vec![made(), write(21, json!({"data": 2}))]), 0, "once it is work");
    }

    #[test]
    fn what_is_applied_at_a_start_is_how_a_program_finds_out_what_is_there() {
        let applied = |at| Request { verb: "patch".to_owned(), patch: "apply".to_owned(), ..request(at) };
        let made = || vec![write(0, json!({"data": 1}))];
        assert_eq!(found_in(&Act::Restart, vec![applied(11), applied(21)], made()), 0);
        assert_eq!(found_in(&Act::Touch, vec![applied(11), applied(21)], made()), 1);
        assert_eq!(found_in(&Act::Restart, vec![request(11), request(21)], made()), 1);
    }

    #[test]
    fn what_changes_the_times_of_managers_alone_changes_nothing() {
        let object = |time: &str, data: u8| {
            json!({"metadata": {"name": "b", "resourceVersion": time,
            "managedFields": [{"time": time}]}, "data": data})
        };
        let writes = |second: u8| {
            vec![write(0, object("0", 1)), write(11, object("1", 1)), write(21, object("2", second))]
        };
        assert_eq!(found(&[11, 21], writes(1)), 1);
        assert_eq!(found(&[11, 21], writes(2)), 0);
    }
}
