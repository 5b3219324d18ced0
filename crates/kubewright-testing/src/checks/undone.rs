//! An operator that is started anew in a cluster at rest finds nothing that it has missed.
//!
//! Judged: what an operator creates, changes or deletes in the first pass after it was started anew, and in no later one: it had not been told of
//! something, or had forgotten it. Not judged: operators that would have looked again by themselves (a key waits for its time);
//! leases and Events; writes of nothing but times; all of it when somebody else writes in that pass, too. What is written in each pass is
//! another check's.

use kubewright_cluster::recording::Did;
use serde_json::Value;

use super::evidence::{Evidence, is_work};

pub(super) fn judge(evidence: &Evidence) -> Option<String> {
    let (first, later) = evidence.passes.split_first()?;
    if later.is_empty() || evidence.looks_again {
        return None;
    }
    let mut all = evidence.writes().iter().filter(|one| first.has(one.time) && is_work(&one.collection));
    let work: Vec<_> = evidence.work(*first).collect();
    if all.by_ref().count() != work.len() {
        return None;
    }
    let found = work.into_iter().find(|write| {
        let comes_again = later.iter().any(|span| {
            evidence.work(*span).any(|one| one.collection == write.collection && one.key == write.key)
        });
        let is_same = |one: &&std::sync::Arc<kubewright_cluster::recording::Write>| {
            one.collection == write.collection && one.key == write.key && one.revision < write.revision
        };
        let before = evidence.writes().iter().rev().find(is_same);
        let changes = write.did == Did::Delete
            || before.is_none_or(|before| content(&before.object()) != content(&write.object()));
        changes && !comes_again
    })?;
    Some(format!(
        "all was at rest; {} was started anew, and wrote ({:?}) {} {}: it had missed why",
        found.by.user, found.did, found.collection, found.key
    ))
}

/// An object without what each write changes, and without times.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(field);
        }
    }
    remove_times(&mut object);
    object
}

fn remove_times(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(remove_times),
        Value::Array(items) => items.iter_mut().for_each(remove_times),
        Value::String(text) if text.contains('T') && text.parse::<jiff::Timestamp>().is_ok() => text.clear(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::evidence::Span;
    use super::super::evidence::stories::{OPERATOR, Story, TEST, at};
    use super::*;

    /// Two passes: seconds 10 to 20 and 20 to 30.
    fn judged(story: Story) -> Option<String> {
        let passes =
            [(10.0, 20.0), (20.0, 30.0)].map(|(from, to)| Span { from: at(from), to: at(to) }).into();
        judge(&Evidence { passes, ..story.evidence() })
    }

    const MAP: &str = "/configmaps default/a";

    fn written(times: &[f64], text: &str) -> Story {
        let story = Story::default().write(1.0, OPERATOR, Did::Create, MAP, json!({"data": {"at": "one"}}));
        let write = |story: Story, time: &f64| {
            story.write(*time, OPERATOR, Did::Update, MAP, json!({"data": {"at": text}}))
        };
        times.iter().fold(story, write)
    }

    #[test]
    fn what_is_done_once_after_a_start_is_found() {
        let found = judged(written(&[11.0], "two")).expect("found");
        assert!(found.contains("wrote (Update) /configmaps default/a"), "{found}");
    }

    #[test]
    fn what_is_deleted_once_after_a_start_is_found() {
        let object = json!({"data": {"at": "one"}});
        let story = Story::default().write(1.0, OPERATOR, Did::Create, MAP, object.clone());
        let found = judged(story.write(11.0, OPERATOR, Did::Delete, MAP, object)).expect("found");
        assert!(found.contains("wrote (Delete) /configmaps default/a"), "{found}");
    }

    #[test]
    fn what_is_done_in_each_pass_or_by_time_or_after_others_is_not() {
        assert_eq!(judged(written(&[11.0, 21.0], "two")), None, "another check's");
        assert_eq!(judged(written(&[11.0], "one")), None, "nothing is changed");
        let times =
            Story::default().write(1.0, OPERATOR, Did::Create, MAP, json!({"at": "2026-01-01T00:00:00Z"}));
        let times = times.write(11.0, OPERATOR, Did::Update, MAP, json!({"at": "2026-01-01T00:01:00Z"}));
        assert_eq!(judged(times), None, "a time");
        let disturbed =
            written(&[11.0], "two").write(10.5, TEST, Did::Delete, "/secrets default/b", json!({}));
        assert_eq!(judged(disturbed), None, "somebody else wrote");
    }

    #[test]
    fn an_operator_that_would_look_again_by_itself_is_not_judged() {
        let passes =
            [(10.0, 20.0), (20.0, 30.0)].map(|(from, to)| Span { from: at(from), to: at(to) }).into();
        let evidence = Evidence { passes, looks_again: true, ..written(&[11.0], "two").evidence() };
        assert_eq!(judge(&evidence), None);
    }
}
