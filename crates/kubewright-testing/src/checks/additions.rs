//! What others add to the metadata of an operator's objects stays there.
//!
//! Judged: labels, annotations, finalizers and owner references that the test adds to an object that an operator has made, and that
//! an operator's later write has not any more. Not judged: what is in the object besides, as an operator may want to have all of
//! that; objects that are made anew; what somebody else removes.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_cluster::recording::Did;
use serde_json::Value;

use super::evidence::{Evidence, TEST, is_operator};

/// Something in metadata: which part of it, and its name there.
type Entry = (&'static str, String);

/// An object that an operator has made.
#[derive(Default)]
struct Made {
    entries: BTreeSet<Entry>,
    /// What of them the test has added.
    added: BTreeSet<Entry>,
}

pub(super) fn judge(evidence: &Evidence) -> Option<String> {
    let mut all: BTreeMap<(&str, &str), Made> = BTreeMap::new();
    for write in evidence.writes() {
        let place = (&*write.collection, &*write.key);
        let is_by_operator = is_operator(&write.by.user);
        match write.did {
            Did::Create if is_by_operator => {
                let entries = entries(&write.object()["metadata"]);
                all.insert(place, Made { entries, added: BTreeSet::new() });
            }
            Did::Create | Did::Delete => drop(all.remove(&place)),
            Did::Update => {
                let Some(made) = all.get_mut(&place) else { continue };
                let now = entries(&write.object()["metadata"]);
                if let (true, Some((part, name))) = (is_by_operator, made.added.difference(&now).next()) {
                    return Some(format!(
                        "somebody has added {name} to the {part} of {} {}, and {} has removed it",
                        write.collection, write.key, write.by.user
                    ));
                }
                if write.by.user == TEST {
                    made.added.extend(now.difference(&made.entries).cloned());
                }
                made.added.retain(|entry| now.contains(entry));
                made.entries = now;
            }
        }
    }
    None
}

fn entries(metadata: &Value) -> BTreeSet<Entry> {
    let names = |part: &'static str| {
        metadata[part]
            .as_object()
            .into_iter()
            .flat_map(|map| map.keys())
            .map(move |name| (part, name.clone()))
    };
    let items = |part: &'static str, name: fn(&Value) -> Option<&str>| {
        let items = metadata[part].as_array().into_iter().flatten().filter_map(name);
        items.map(move |name| (part, name.to_owned()))
    };
    names("labels")
        .chain(names("annotations"))
        .chain(items("finalizers", Value::as_str))
        .chain(items("ownerReferences", |owner| owner["uid"].as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::evidence::stories::{OPERATOR, Story};
    use super::*;

    const MAP: &str = "/configmaps default/a";

    /// An operator makes an object, the test writes it, and somebody writes it once more.
    fn judged(maker: &str, added: &Value, remover: &str, after: &Value) -> Option<String> {
        let story = Story::default().write(0.0, maker, Did::Create, MAP, json!({"metadata": {}}));
        let story = story.write(1.0, TEST, Did::Update, MAP, json!({"metadata": added}));
        judge(&story.write(2.0, remover, Did::Update, MAP, json!({"metadata": after})).evidence())
    }

    #[test]
    fn an_addition_that_an_operator_removes_is_found() {
        for added in [
            json!({"labels": {"mine": "1"}}),
            json!({"annotations": {"mine": "1"}}),
            json!({"finalizers": ["mine"]}),
            json!({"ownerReferences": [{"uid": "mine"}]}),
        ] {
            let found = judged(OPERATOR, &added, OPERATOR, &json!({})).expect("found");
            assert!(found.starts_with("somebody has added mine to the "), "{found}");
            assert_eq!(judged(OPERATOR, &added, OPERATOR, &added), None, "it stays");
        }
    }

    #[test]
    fn what_others_remove_and_what_is_in_what_others_have_made_is_not() {
        let added = json!({"labels": {"mine": "1"}});
        assert_eq!(judged(OPERATOR, &added, TEST, &json!({})), None);
        assert_eq!(judged(TEST, &added, OPERATOR, &json!({})), None);
    }
}
