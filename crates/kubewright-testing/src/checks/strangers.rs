//! What somebody else has made under a name that an operator wants is left as it is.
//!
//! Judged: updates by which an operator changes what is in an object that the test has made and that has no owner, of a kind of
//! which the operator makes objects itself. Not judged: its metadata (a finalizer or an owner reference may be how operators
//! take notice of it) and its status; objects that an owner reference, or a manager of fields that the operator had before, makes
//! the operator's.

use std::collections::BTreeSet;

use kubewright_cluster::recording::Did;
use serde_json::Value;

use super::evidence::{Evidence, TEST, is_operator};

pub(super) fn judge(evidence: &Evidence) -> Option<String> {
    let writes = evidence.writes();
    writes.iter().enumerate().find_map(|(place, write)| {
        if write.did != Did::Update || !is_operator(&write.by.user) {
            return None;
        }
        let same = |one: &&std::sync::Arc<kubewright_cluster::recording::Write>| {
            one.collection == write.collection && one.key == write.key
        };
        let before = writes[..place].iter().rev().find(same)?;
        let (was, is) = (before.object(), write.object());
        if was["metadata"]["ownerReferences"].as_array().is_some_and(|owners| !owners.is_empty()) {
            return None;
        }
        let made = writes[..place].iter().rev().find(|one| same(one) && one.did == Did::Create)?;
        let makes: BTreeSet<&str> = writes
            .iter()
            .filter(|one| one.did == Did::Create && one.by.user == write.by.user)
            .map(|one| &*one.collection)
            .collect();
        let is_strange = made.by.user == TEST && makes.contains(&*write.collection);
        (is_strange && content(was) != content(is)).then(|| {
            format!(
                "{} has changed {} {}, which somebody else has made",
                write.by.user, write.collection, write.key
            )
        })
    })
}

/// What is in an object.
fn content(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("metadata");
        fields.remove("status");
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::evidence::stories::{OPERATOR, Story};
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "as it is written down")]
    fn judged(maker: &str, metadata: Value, after: Value) -> Option<String> {
        let before = json!({"metadata": metadata, "data": {"a": "1"}});
        let story = Story::default().write(0.0, maker, Did::Create, "/configmaps default/a", before);
        let story = story.write(1.0, OPERATOR, Did::Create, "/configmaps default/own", json!({}));
        judge(&story.write(2.0, OPERATOR, Did::Update, "/configmaps default/a", after).evidence())
    }

    #[test]
    fn a_stranger_that_is_written_over_is_found() {
        let found = judged(TEST, json!({}), json!({"data": {"a": "2"}})).expect("found");
        assert!(
            found.ends_with("has changed /configmaps default/a, which somebody else has made"),
            "{found}"
        );
    }

    #[test]
    fn what_is_its_own_and_what_it_only_marks_is_not() {
        let changed = json!({"data": {"a": "2"}});
        assert_eq!(judged(OPERATOR, json!({}), changed.clone()), None, "it made it");
        assert_eq!(
            judged(TEST, json!({"ownerReferences": [{"uid": "1"}]}), changed),
            None,
            "it has an owner"
        );
        let marked = json!({"metadata": {"finalizers": ["a/b"]}, "data": {"a": "1"}});
        assert_eq!(judged(TEST, json!({}), marked), None, "a finalizer");
    }
}
