//! What the program asked for, and how it was answered.

use std::{collections::BTreeMap, time::Duration};

use super::Scene;
use crate::{
    finding::{Check, Finding},
    plan::{Act, Desired, Disturbance},
    story::{Request, Rest, Who, Write},
};

/// How often a request is refused before it counts as failing again and again.
const REFUSED: usize = 3;
/// How many requests of one kind in a second are a loop.
const LOOP: usize = 20;
/// How many pauses between tries have to grow for a back-off, and by how much each.
const GROWING: usize = 4;
const GROWS: f64 = 1.3;
/// How often in a second what fails may be tried again.
const TRIES: usize = 100;
/// How long the caches of a program on a busy machine may be behind.
const STALE: Duration = Duration::from_millis(500);
/// How long before the end of a step is rest.
const AT_REST: Duration = Duration::from_secs(1);

pub(super) fn judge(scene: &Scene<'_>) -> Vec<Finding> {
    let requests: Vec<&Request> = scene.story.requests_in(scene.passed).filter(|one| one.is_work()).collect();
    let mut found = Vec::new();
    if !is_by_quota(scene) {
        // Events and Leases too: a program may end its work where it may not write them.
        let all: Vec<&Request> = scene.story.requests_in(scene.passed).collect();
        found.extend(forbidden(scene, &all));
    }
    if !scene.is_hostile() {
        found.extend(invalid(scene, &requests));
        // Who finds the name taken that it wants can do nothing but try again.
        if !scene.has_stranger() {
            found.extend(failing(scene, &requests));
        }
    }
    found.extend(looping(scene, &requests));
    found.extend(insistent(scene, &requests));
    found
}

/// Whether what is forbidden is so by a quota of the trial.
fn is_by_quota(scene: &Scene<'_>) -> bool {
    matches!(scene.step.disturbance, Some(Disturbance::Quota(_)))
}

fn finding(scene: &Scene<'_>, check: Check, subject: String, message: String) -> Finding {
    Finding { check, subject, message, differences: Vec::new(), timeline: scene.timeline(), steps: None }
}

/// `update deployments.apps/status`, without a name.
pub(super) fn kind_of(request: &Request) -> String {
    let nameless = Request { namespace: String::new(), name: String::new(), ..request.clone() };
    nameless.text()
}

/// Requests by what they ask for, in their order.
pub(super) fn by<'a>(
    requests: impl IntoIterator<Item = &'a Request>,
    key: impl Fn(&Request) -> String,
) -> BTreeMap<String, Vec<&'a Request>> {
    let mut all: BTreeMap<String, Vec<&Request>> = BTreeMap::new();
    for request in requests {
        all.entry(key(request)).or_default().push(request);
    }
    all
}

fn forbidden(scene: &Scene<'_>, requests: &[&Request]) -> Vec<Finding> {
    let is_by_role = |one: &&Request| {
        one.code == Some(403) && !one.struck && !scene.known.is_refused_for_what_it_says(one)
    };
    let all = by(requests.iter().copied().filter(is_by_role), kind_of);
    let told = all.into_iter().map(|(kind, refused)| {
        let message =
            format!("its role does not allow {} ({} times refused)", refused[0].text(), refused.len());
        finding(scene, Check::Rights, kind, message)
    });
    told.collect()
}

/// Writes that are refused because of what is in them. The `test` of a JSON patch may well not hold.
fn invalid(scene: &Scene<'_>, requests: &[&Request]) -> Vec<Finding> {
    // What goes on to a pod is answered by the pod, and there is none here that could.
    let is_refused = |one: &&Request| {
        scene.known.is_refused_for_what_it_says(one)
            && !one.goes_to_pod()
            && !(one.code == Some(403) && is_by_quota(scene))
    };
    let refused = requests.iter().copied().filter(is_refused).filter(|one| one.patch != "json");
    let refused = refused.filter(|one| !makes_room(scene, requests, one));
    // What is made of a changed sample may still be written when it is deleted, or until it is known that it is changed back.
    let is_asked = |write: &&Write| write.by == Who::Trial && scene.known.samples.contains(&write.id);
    let asked = scene.story.writes_in(scene.passed).find(is_asked).map(|write| write.at);
    let is_of_change = |one: &Request| {
        let count = scene.number() + usize::from(asked.is_none_or(|asked| one.at >= asked + STALE));
        let mut desired = scene.story.plan.steps.iter().take(count).map(|step| &step.desired);
        matches!(desired.rfind(|desired| **desired != Desired::Nothing), Some(Desired::Changed(_)))
    };
    let (changed, plain): (Vec<&Request>, Vec<&Request>) = refused.partition(|one| is_of_change(one));
    let all = [(Check::LaxSchema, changed), (Check::Schema, plain)];
    let all = all.into_iter().flat_map(|(check, refused)| {
        by(refused, kind_of).into_iter().map(move |(kind, refused)| (check, kind, refused))
    });
    let told = all.map(|(check, kind, refused)| {
        let code = refused[0].code.unwrap_or_default();
        let message =
            format!("{} is refused for what is in it ({code}, {} times)", refused[0].text(), refused.len());
        finding(scene, check, kind, message)
    });
    told.collect()
}

/// Whether a write that is refused is one of an object that somebody has changed in this step, and is done soon after: who says which fields
/// it wants learns by the answer alone that what somebody else has put there cannot stand beside them.
fn makes_room(scene: &Scene<'_>, requests: &[&Request], refused: &Request) -> bool {
    let Act::ChangeObject(id, ..) = scene.step.meddling() else { return false };
    let is_changed = refused.collection == id.collection
        && refused.namespace == id.namespace()
        && refused.name == id.name();
    let is_done = |one: &&&Request| {
        one.text() == refused.text()
            && one.patch == refused.patch
            && one.code.is_some_and(|code| code < 300)
            && one.at >= refused.at
            && one.at - refused.at < STALE
    };
    is_changed && requests.iter().any(|one| is_done(&one))
}

/// What is refused again and again, and never succeeds.
fn failing(scene: &Scene<'_>, requests: &[&Request]) -> Vec<Finding> {
    let is_refusal = |one: &Request| match one.code {
        Some(403 | 422 | 400) | None => false,
        // Who deletes what may be there takes it for done.
        Some(404) => one.writes() && !one.verb.starts_with("delete"),
        Some(code) => code >= 400 && !one.struck,
    };
    let is_meant = |one: &&Request| one.verb != "watch" && !one.goes_to_pod();
    let all = by(requests.iter().copied().filter(is_meant), |one| match &*one.verb {
        // What is created has no name in its URL; it is the same object if it is refused each time.
        "create" => kind_of(one),
        _ => one.text(),
    });
    let mut found = Vec::new();
    for (text, tries) in all {
        let refused = tries.iter().rev().take_while(|one| is_refusal(one)).count();
        let code = tries.last().and_then(|one| one.code).unwrap_or_default();
        // Who creates in each pass what may be there takes that for done, too; who fails for it tries again later and later.
        let is_done = code == 409 && tries[0].verb == "create" && !backs_off(&tries);
        if refused >= REFUSED && !is_done && !scene.step.meets_faults() && !catches_up(scene, &tries) {
            let kind = kind_of(tries[0]);
            let message =
                format!("{text} is refused ({code}) each of {refused} times, and nothing else helps it");
            found.push(finding(scene, Check::FailsAtRest, format!("{kind} {code}"), message));
        }
    }
    found
}

/// Whether some of these tries, one after the other, came later and later.
fn backs_off(tries: &[&Request]) -> bool {
    let gaps: Vec<Duration> = tries.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at)).collect();
    let grows = |gaps: &[Duration]| gaps.windows(2).all(|pair| pair[1] >= pair[0].mul_f64(GROWS));
    gaps.windows(GROWING).any(grows)
}

/// Whether the last of these tries met a conflict, or nothing, soon after its object was written or deleted: its caches know of that a
/// moment later, and then there may be nothing left to do.
fn catches_up(scene: &Scene<'_>, tries: &[&Request]) -> bool {
    let Some(last) =
        tries.last().filter(|last| matches!(last.code, Some(404 | 409)) && last.verb != "create")
    else {
        return false;
    };
    let is_it = |write: &&Write| {
        let id = &write.id;
        id.collection == last.collection && id.namespace() == last.namespace && id.name() == last.name
    };
    let written = scene.story.writes.iter().rev().filter(is_it).find(|write| write.at <= last.at);
    written.is_some_and(|write| last.at - write.at < STALE)
}

/// Requests without a pause when all is at rest.
fn looping(scene: &Scene<'_>, requests: &[&Request]) -> Vec<Finding> {
    if scene.passed.rest != Rest::Quiet {
        return Vec::new();
    }
    let begin = scene.passed.until.saturating_sub(AT_REST);
    // What fails is judged by its back-off.
    let is_answered = |one: &&Request| one.code.is_some_and(|code| code < 400) && one.verb != "watch";
    let last = || requests.iter().copied().filter(|one| one.at >= begin);
    // What a pass that fails asks for is asked again when it is tried again.
    let fails = last().any(|one| one.writes() && one.code.is_some_and(|code| code >= 400));
    let most = if fails { TRIES } else { LOOP };
    let busy = by(last().filter(is_answered), kind_of).into_iter().filter(|(_, all)| all.len() > most);
    let told = busy.map(|(kind, all)| {
        let message =
            format!("at rest it asks without a pause: {} {} times in a second", all[0].text(), all.len());
        finding(scene, Check::HotLoop, kind, message)
    });
    told.collect()
}

/// What fails and is tried again at once.
fn insistent(scene: &Scene<'_>, requests: &[&Request]) -> Vec<Finding> {
    let mut found = Vec::new();
    let failed = requests
        .iter()
        .copied()
        .filter(|one| one.code.is_none_or(|code| code >= 400) && one.code != Some(404));
    for (text, tries) in by(failed, Request::text) {
        let second = Duration::from_secs(1);
        let most = tries
            .iter()
            .enumerate()
            .map(|(place, first)| tries[place..].iter().take_while(|one| one.at < first.at + second).count());
        let most = most.max().unwrap_or_default();
        if most > TRIES {
            let message =
                format!("{text} fails and is tried again without a pause: {most} times in a second");
            found.push(finding(scene, Check::BackOff, kind_of(tries[0]), message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        change::Change,
        known::Known,
        plan::{Plan, Step},
        state::State,
        story::{Did, ObjectId, Passed, Story},
    };

    /// A conflict at a time in milliseconds.
    fn refused(verb: &str, at: u64) -> Request {
        Request {
            at: Duration::from_millis(at),
            verb: verb.to_owned(),
            collection: "g/pages".to_owned(),
            subresource: "status".to_owned(),
            namespace: "a".to_owned(),
            name: "b".to_owned(),
            patch: String::new(),
            code: Some(409),
            struck: false,
        }
    }

    /// How often a status that was written at 100 ms is refused as a conflict at these times, in milliseconds, and it counts as failing.
    fn fails(conflicts: &[u64]) -> bool {
        let step = Step::new(Act::Restart, Desired::Samples);
        let passed = Passed {
            from: Duration::ZERO,
            until: Duration::from_secs(5),
            rest: Rest::Quiet,
            state: State::new(),
            refused: None,
        };
        let write = Write {
            at: Duration::from_millis(100),
            id: ObjectId::new("g/pages", "a/b"),
            did: Did::Update,
            by: Who::Program,
            subresource: "status".to_owned(),
            object: json!({}),
        };
        let requests: Vec<Request> = conflicts.iter().map(|at| refused("update", *at)).collect();
        let plan = Plan::new("restart", [step.clone()]);
        let story = Story {
            plan,
            steps: vec![passed],
            writes: vec![write],
            requests: requests.clone(),
            lives: Vec::new(),
        };
        let known = Known::default();
        let scene = Scene { story: &story, step: &step, passed: &story.steps[0], known: &known };
        !failing(&scene, &requests.iter().collect::<Vec<_>>()).is_empty()
    }

    #[test]
    fn tries_that_come_later_and_later_are_a_back_off_and_those_of_each_pass_are_none() {
        let backs_off = |times: &[u64]| {
            let all: Vec<Request> = times.iter().map(|at| refused("create", *at)).collect();
            super::backs_off(&all.iter().collect::<Vec<_>>())
        };
        assert!(backs_off(&[0, 6, 17, 38, 79]), "of client-go");
        assert!(!backs_off(&[0, 2, 4, 500, 502, 504, 2000, 2002, 2004]), "three in each pass");
        assert!(!backs_off(&[0, 10, 30]));
    }

    #[test]
    fn a_conflict_that_caches_catch_up_with_is_no_failure_and_one_that_stays_is() {
        assert!(!fails(&[101, 106, 116, 136, 176]));
        assert!(!fails(&[700, 900]), "twice is not again and again");
        assert!(fails(&[101, 106, 116, 136, 176, 256, 416, 736]));
    }

    #[test]
    fn a_simulated_pod_that_has_no_log_is_no_failure_of_the_operator() {
        let told = |subresource: &str| {
            let get = |at| Request {
                collection: "/pods".to_owned(),
                subresource: subresource.to_owned(),
                code: Some(500),
                ..refused("get", at)
            };
            let requests = [get(100), get(700), get(1900)];
            let step = Step::create();
            let passed = Passed {
                from: Duration::ZERO,
                until: Duration::from_secs(5),
                rest: Rest::Quiet,
                state: State::new(),
                refused: None,
            };
            let story = Story {
                plan: Plan::new("x", [step.clone()]),
                steps: vec![passed],
                writes: Vec::new(),
                requests: requests.to_vec(),
                lives: Vec::new(),
            };
            let known = Known::default();
            let scene = Scene { story: &story, step: &step, passed: &story.steps[0], known: &known };
            failing(&scene, &requests.iter().collect::<Vec<_>>()).len()
        };
        assert_eq!((told("log"), told("status")), (0, 1));
    }

    #[test]
    fn a_try_that_comes_as_a_sample_is_changed_back_is_still_one_of_the_change() {
        let told = |at: u64| -> Vec<Check> {
            let change = Change::one(0, "/spec/image", None, false);
            let there = Step::new(Act::Change(Some(change.clone())), Desired::Changed(change));
            let back = Step::new(Act::Change(None), Desired::Samples);
            let passed = |from: u64| Passed {
                from: Duration::from_secs(from),
                until: Duration::from_secs(from + 9),
                rest: Rest::Quiet,
                state: State::new(),
                refused: None,
            };
            let sample = ObjectId::new("g/pages", "a/b");
            let write = Write {
                at: Duration::from_millis(10_001),
                id: sample.clone(),
                did: Did::Update,
                by: Who::Trial,
                subresource: String::new(),
                object: json!({}),
            };
            let patch = Request { code: Some(422), ..refused("patch", at) };
            let story = Story {
                plan: Plan::new("change", [there, back]),
                steps: vec![passed(0), passed(10)],
                writes: vec![write],
                requests: vec![patch],
                lives: Vec::new(),
            };
            let known = Known { samples: vec![sample], ..Known::default() };
            let (step, passed) = (&story.plan.steps[1], &story.steps[1]);
            judge(&Scene { story: &story, step, passed, known: &known })
                .into_iter()
                .map(|one| one.check)
                .collect()
        };
        assert_eq!(told(10_015), [Check::LaxSchema]);
        assert_eq!(told(12_000), [Check::Schema]);
    }

    #[test]
    fn what_the_role_allowed_before_is_forbidden_by_what_is_in_it_unless_it_is_a_role_or_a_quota_forbids_it()
    {
        let told = |collection: &str, allowed: bool, disturbance: Option<Disturbance>| -> Vec<Check> {
            let change = Change::one(0, "/spec/account", Some("\"trial\"".to_owned()), false);
            let step = Step { disturbance, ..Step::new(Act::Create(None), Desired::Changed(change)) };
            let passed = Passed {
                from: Duration::ZERO,
                until: Duration::from_secs(5),
                rest: Rest::Quiet,
                state: State::new(),
                refused: None,
            };
            let create = |code| Request {
                collection: collection.to_owned(),
                subresource: String::new(),
                name: String::new(),
                code: Some(code),
                ..refused("create", 100)
            };
            let story = |code| Story {
                plan: Plan::new("fresh", [step.clone()]),
                steps: vec![passed.clone()],
                writes: Vec::new(),
                requests: vec![create(code)],
                lives: Vec::new(),
            };
            let mut known = Known::default();
            if allowed {
                known.learn(&story(201));
            }
            let story = story(403);
            let scene = Scene { story: &story, step: &step, passed: &story.steps[0], known: &known };
            judge(&scene).into_iter().map(|one| one.check).collect()
        };
        assert_eq!(told("/pods", true, None), [Check::LaxSchema]);
        assert_eq!(told("/pods", false, None), [Check::Rights]);
        assert_eq!(told("rbac.authorization.k8s.io/roles", true, None), [Check::Rights]);
        assert_eq!(told("/pods", true, Some(Disturbance::Quota("/pods".to_owned()))), []);
    }

    #[test]
    fn what_is_refused_and_done_at_once_where_somebody_has_changed_the_object_is_valid_all_the_same() {
        let told = |id: &str, done_at: u64| {
            let id = ObjectId::new("g/pages", id);
            let step = Step::new(Act::ChangeObject(id, "/spec/port".to_owned(), 2.into()), Desired::Samples);
            let passed = Passed {
                from: Duration::ZERO,
                until: Duration::from_secs(5),
                rest: Rest::Quiet,
                state: State::new(),
                refused: None,
            };
            let apply = |at, code| Request {
                patch: "apply".to_owned(),
                subresource: String::new(),
                code: Some(code),
                ..refused("patch", at)
            };
            let requests = vec![apply(100, 422), apply(done_at, 200)];
            let plan = Plan::new("changed", [step.clone()]);
            let story = Story {
                plan,
                steps: vec![passed],
                writes: Vec::new(),
                requests: requests.clone(),
                lives: Vec::new(),
            };
            let known = Known::default();
            let scene = Scene { story: &story, step: &step, passed: &story.steps[0], known: &known };
            invalid(&scene, &requests.iter().collect::<Vec<_>>()).len()
        };
        assert_eq!(told("a/b", 120), 0);
        assert_eq!(told("a/b", 2000), 1, "it was wrong for a while");
        assert_eq!(told("a/b", 50), 1, "it was done before");
        assert_eq!(told("a/other", 120), 1, "nobody has changed it");
    }
}
