//! Who says that an object is ready has done what is to be done for it.
//!
//! Judged: the write by which an operator turns an object from not ready to ready for its current generation (its
//! `status.observedGeneration`, with `status.ready`, or a condition such as `Ready` that is `True`), when the same operator
//! creates a dependent of the object at once after it, under a name that never was. It had not done what it said.
//!
//! Not judged, because it may have had its reasons: anything where nothing says which generation was observed; what comes a
//! quarter of a second later or more (a timer); what comes in the second after, or together with, a change that somebody
//! else made of another object (it may have been told of that later); all of it when watches were delayed, cut or repeated.

use std::sync::Arc;

use jiff::SignedDuration;
use kubewright_cluster::recording::{Did, Write};
use serde_json::Value;

use super::{Evidence, is_operator, is_work};

/// How soon after it has spoken an operator is taken at its word.
const AT_ONCE: SignedDuration = SignedDuration::from_millis(250);
/// For how long a change that somebody else has made may still be on its way.
const ON_ITS_WAY: SignedDuration = SignedDuration::from_secs(1);
/// Conditions that say that all is done.
const READY: [&str; 5] = ["Ready", "Available", "Synced", "Reconciled", "Complete"];

pub(super) fn judge(evidence: &Evidence) -> Option<String> {
    let is_stale = |time| evidence.stale.iter().any(|span| span.has(time));
    let writes = evidence.writes();
    writes.iter().enumerate().find_map(|(index, claim)| {
        let is_claim = is_operator(&claim.by.user)
            && claim.did == Did::Update
            && !is_stale(claim.time)
            && turns_ready(&writes[..index], claim);
        let late = is_claim.then(|| done_afterwards(writes, index)).flatten()?;
        Some(format!(
            "{} said at {} that {} {} is ready, and only then made {} {}",
            claim.by.user, claim.time, claim.collection, claim.key, late.collection, late.key
        ))
    })
}

/// Whether an object is ready by a write, and was not before.
fn turns_ready(before: &[Arc<Write>], claim: &Write) -> bool {
    let same = |one: &&Arc<Write>| one.collection == claim.collection && one.key == claim.key;
    is_ready(&claim.object()) && !before.iter().rev().find(same).is_some_and(|one| is_ready(&one.object()))
}

/// Whether an object is said to be ready for what it is now.
fn is_ready(object: &Value) -> bool {
    let (status, generation) = (&object["status"], &object["metadata"]["generation"]);
    let ready = |condition: &Value| {
        let named = condition["type"].as_str().is_some_and(|name| READY.contains(&name));
        let current = condition.get("observedGeneration").is_none_or(|observed| observed == generation);
        named && current && condition["status"] == "True"
    };
    let conditions = status["conditions"].as_array();
    generation.is_number()
        && status["observedGeneration"] == *generation
        && (status["ready"] == true || conditions.is_some_and(|all| all.iter().any(ready)))
}

/// The dependent that was made right after a claim, if nobody else has given a reason to.
fn done_afterwards(writes: &[Arc<Write>], claim: usize) -> Option<&Arc<Write>> {
    let (before, claim, after) = (&writes[..claim], &writes[claim], &writes[claim + 1..]);
    let uid = claim.object()["metadata"]["uid"].clone();
    let is_disturbance = |one: &&Arc<Write>| {
        let is_claims_own = one.collection == claim.collection && one.key == claim.key;
        one.by.user != claim.by.user
            && is_somebody(&one.by.user)
            && is_work(&one.collection)
            && !is_claims_own
    };
    let recent = |one: &&Arc<Write>| claim.time.duration_since(one.time) <= ON_ITS_WAY;
    if before.iter().rev().take_while(recent).any(|one| is_disturbance(&one)) {
        return None;
    }
    let soon = after.iter().take_while(|one| one.time.duration_since(claim.time) <= AT_ONCE);
    let undisturbed = soon.take_while(|one| !is_disturbance(one) && !changes(claim, one));
    undisturbed.into_iter().find(|one| {
        let is_new = || !before.iter().any(|old| old.collection == one.collection && old.key == one.key);
        one.did == Did::Create && one.by.user == claim.by.user && refers_to(&one.object(), &uid) && is_new()
    })
}

/// Whether a user is neither the API server nor what belongs to it, nor who installs operators.
fn is_somebody(user: &str) -> bool {
    is_operator(user) || !(user.is_empty() || user.starts_with("system:") || user == crate::INSTALLER)
}

/// Whether a write makes another generation of the object of a claim.
fn changes(claim: &Write, write: &Write) -> bool {
    let is_same = write.collection == claim.collection && write.key == claim.key;
    is_same && write.object()["metadata"]["generation"] != claim.object()["metadata"]["generation"]
}

fn refers_to(object: &Value, uid: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    uid.is_string() && owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == *uid))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Span;
    use super::super::evidence::stories::{OPERATOR, Story, TEST, at};
    use super::*;

    const ORDER: &str = "shop.example/orders default/a";

    #[expect(clippy::needless_pass_by_value, reason = "as it is written down")]
    fn order(generation: u32, status: Value) -> Value {
        json!({"metadata": {"uid": "1", "generation": generation}, "status": status})
    }

    fn ready(generation: u32) -> Value {
        order(generation, json!({"ready": true, "observedGeneration": generation}))
    }

    fn child() -> Value {
        json!({"metadata": {"ownerReferences": [{"uid": "1"}]}})
    }

    /// An order is made at second 10.
    fn ordered() -> Story {
        Story::default().write(10.0, TEST, Did::Create, ORDER, order(1, json!({})))
    }

    fn says(story: Story, time: f64, object: Value) -> Story {
        story.write(time, OPERATOR, Did::Update, ORDER, object)
    }

    fn makes(story: Story, time: f64, key: &str) -> Story {
        story.write(time, OPERATOR, Did::Create, &format!("/configmaps default/{key}"), child())
    }

    #[test]
    fn ready_before_the_child_is_there_is_found() {
        let condition = json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]});
        for status in [ready(1), order(1, condition)] {
            let found =
                judge(&makes(says(ordered(), 10.002, status), 10.004, "a").evidence()).expect("found");
            assert!(found.ends_with("is ready, and only then made /configmaps default/a"), "{found}");
        }
    }

    #[test]
    fn ready_after_the_child_is_there_is_not() {
        assert_eq!(judge(&says(makes(ordered(), 10.002, "a"), 10.004, ready(1)).evidence()), None);
    }

    #[test]
    fn a_word_that_is_not_about_what_the_object_is_now_is_not_taken() {
        for status in [
            order(2, json!({"ready": true, "observedGeneration": 1})),
            order(1, json!({"ready": true})),
            order(1, json!({"ready": false, "observedGeneration": 1})),
            order(1, json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "False"}]})),
        ] {
            assert_eq!(judge(&makes(says(ordered(), 10.002, status), 10.004, "a").evidence()), None);
        }
    }

    #[test]
    fn what_may_have_its_reasons_is_not_judged() {
        let said = || says(ordered(), 10.002, ready(1));
        assert_eq!(judge(&makes(said(), 11.0, "a").evidence()), None, "a timer");
        let changed = said().write(10.003, TEST, Did::Update, ORDER, order(2, json!({})));
        assert_eq!(judge(&makes(changed, 10.004, "a").evidence()), None, "there is more to do");
        let other = |time| {
            let story = Story::default().write(time, TEST, Did::Delete, "/configmaps default/b", json!({}));
            let story = story.write(10.0, TEST, Did::Create, ORDER, order(1, json!({})));
            judge(&makes(says(story, 10.002, ready(1)), 10.004, "a").evidence())
        };
        assert_eq!(other(9.5), None, "somebody may have given a reason");
        assert!(other(1.0).is_some(), "long ago");
        let again = says(says(ordered(), 10.002, ready(1)), 20.0, ready(1));
        assert_eq!(judge(&makes(again, 20.002, "later").evidence()), None, "it was ready before");
        let back = Story::default().write(1.0, OPERATOR, Did::Create, "/configmaps default/a", child());
        let back = back.write(10.0, TEST, Did::Create, ORDER, order(1, json!({})));
        assert_eq!(
            judge(&makes(says(back, 10.002, ready(1)), 10.004, "a").evidence()),
            None,
            "it comes back"
        );
        let evidence = makes(said(), 10.004, "a").evidence();
        let stale = vec![Span { from: at(10.0), to: at(11.0) }];
        assert_eq!(judge(&Evidence { stale, ..evidence }), None);
    }
}
