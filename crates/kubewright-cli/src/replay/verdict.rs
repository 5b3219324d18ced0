//! What an operator did in a replay, beside what it did when it was recorded: object by object, at moments of rest. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_trial::{stable, story::ObjectId};
use serde::Serialize;
use serde_json::{Value, json};

/// How an object compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// It is as it was then.
    Same,
    /// Both wrote it, and it is not the same.
    Different,
    /// It was written then, and not now.
    NotDone,
    /// It is written now, and was not then.
    New,
}

impl Verdict {
    /// As a report says it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::NotDone => "not done",
            Self::New => "new",
        }
    }
}

/// An object that was compared: its text then and now, empty where it is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) object: ObjectId,
    pub(super) verdict: Verdict,
    pub(super) then: String,
    pub(super) now: String,
}

/// One of the two worlds: its objects, and which of them the operator wrote since the last moment of rest.
#[derive(Debug, Default)]
pub(super) struct Side {
    objects: BTreeMap<ObjectId, Value>,
    touched: BTreeSet<ObjectId>,
}

impl Side {
    /// Takes note of a write.
    pub(super) fn note(&mut self, id: ObjectId, object: Value, is_gone: bool, is_own: bool) {
        // Nobody knows of an object whose name was made up which one it was, once it is gone.
        let is_named = object["metadata"]["generateName"].as_str().is_none_or(str::is_empty);
        if is_own {
            self.touched.insert(id.clone());
        }
        if is_gone && !is_named {
            self.touched.remove(&id);
        }
        if is_gone {
            self.objects.remove(&id);
        } else {
            self.objects.insert(id, object);
        }
    }

    /// An object as it is.
    pub(super) fn object(&self, id: &ObjectId) -> Option<&Value> {
        self.objects.get(id)
    }

    /// Begins anew after a moment of rest.
    pub(super) fn rest(&mut self) {
        self.touched.clear();
    }

    /// These objects as they are in each run, and which of them the operator wrote. Names that were made up are numbers.
    fn stable(&self, ids: &BTreeSet<ObjectId>, has_hashes: bool) -> BTreeMap<ObjectId, (Value, bool)> {
        let there: Vec<&ObjectId> = ids.iter().filter(|id| self.objects.contains_key(*id)).collect();
        let mut objects: Vec<(String, Value)> = there
            .iter()
            .map(|id| {
                (id.collection.clone(), without_volatile(&id.collection, &self.objects[*id], has_hashes))
            })
            .collect();
        stable::rename_generated(&mut objects);
        let named = objects.into_iter().zip(&there).map(|((collection, object), old)| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let key = match text("namespace") {
                "" => text("name").to_owned(),
                namespace => format!("{namespace}/{}", text("name")),
            };
            (ObjectId::new(collection, key), (object, self.touched.contains(*old)))
        });
        let mut all: BTreeMap<ObjectId, (Value, bool)> = named.collect();
        for gone in ids.iter().filter(|id| !self.objects.contains_key(*id) && self.touched.contains(*id)) {
            all.insert(gone.clone(), (Value::Null, true));
        }
        all
    }
}

/// An object without what differs from run to run; of Secrets whose data is hashed in the recording the keys alone.
fn without_volatile(collection: &str, object: &Value, has_hashes: bool) -> Value {
    let mut object = stable::without_volatile(object, true, &|_| None);
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        owner.as_object_mut().map(|owner| owner.remove("uid"));
    }
    if has_hashes && collection == "/secrets" {
        let data = object.pointer_mut("/data").and_then(Value::as_object_mut);
        for value in data.into_iter().flat_map(|data| data.values_mut()) {
            *value = json!("<hashed>");
        }
    }
    object
}

/// The objects that the operator wrote since the last moment of rest, then or now.
pub(super) fn judge(then: &Side, now: &Side, has_hashes: bool) -> Vec<Compared> {
    let ids: BTreeSet<ObjectId> = then.touched.union(&now.touched).cloned().collect();
    compare(&ids, then, now, has_hashes)
}

/// Whether these objects are as they were then.
pub(super) fn are_same(ids: &BTreeSet<ObjectId>, then: &Side, now: &Side, has_hashes: bool) -> bool {
    compare(ids, then, now, has_hashes).iter().all(|one| one.verdict == Verdict::Same)
}

fn compare(ids: &BTreeSet<ObjectId>, then: &Side, now: &Side, has_hashes: bool) -> Vec<Compared> {
    let (then, now) = (then.stable(ids, has_hashes), now.stable(ids, has_hashes));
    let names: BTreeSet<&ObjectId> = then.keys().chain(now.keys()).collect();
    let missing = (Value::Null, false);
    let compared = names.into_iter().map(|id| {
        let ((old, was_written), (new, is_written)) =
            (then.get(id).unwrap_or(&missing), now.get(id).unwrap_or(&missing));
        let verdict = match (was_written, is_written) {
            _ if old == new => Verdict::Same,
            (true, false) => Verdict::NotDone,
            (false, true) => Verdict::New,
            _ => Verdict::Different,
        };
        Compared { object: id.clone(), verdict, then: text(old), now: text(new) }
    });
    compared.collect()
}

fn text(object: &Value) -> String {
    match object {
        Value::Null => String::new(),
        object => serde_saphyr::to_string(object).unwrap_or_default().trim_end().to_owned() + "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ObjectId {
        ObjectId::new("/configmaps", format!("default/{name}"))
    }

    fn map(name: &str, text: &str, uid: &str) -> Value {
        json!({"kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "uid": uid, "resourceVersion": uid,
            "ownerReferences": [{"name": "o", "uid": uid}]}, "data": {"text": text}})
    }

    fn side(all: &[(&str, Option<&str>, bool)], uid: &str) -> Side {
        let mut side = Side::default();
        for (name, text, is_own) in all {
            side.note(id(name), map(name, text.unwrap_or_default(), uid), text.is_none(), *is_own);
        }
        side
    }

    #[test]
    fn objects_are_the_same_different_not_done_or_new() {
        let then = side(
            &[
                ("a", Some("x"), true),
                ("b", Some("x"), true),
                ("c", Some("x"), true),
                ("gone", None, true),
                ("other", Some("x"), false),
            ],
            "1",
        );
        let now = side(
            &[
                ("a", Some("x"), true),
                ("b", Some("y"), true),
                ("d", Some("x"), true),
                ("gone", Some("x"), false),
                ("other", Some("y"), false),
            ],
            "2",
        );
        let found: Vec<(String, Verdict)> = judge(&then, &now, false)
            .into_iter()
            .map(|one| (one.object.name().to_owned(), one.verdict))
            .collect();
        let wanted = [
            ("a", Verdict::Same),
            ("b", Verdict::Different),
            ("c", Verdict::NotDone),
            ("d", Verdict::New),
            ("gone", Verdict::NotDone),
        ];
        assert_eq!(found, wanted.map(|(name, verdict)| (name.to_owned(), verdict)));
    }

    #[test]
    fn what_is_not_written_since_the_last_rest_is_not_compared() {
        let (mut then, mut now) =
            (side(&[("a", Some("x"), true)], "1"), side(&[("a", Some("y"), true)], "2"));
        then.rest();
        now.rest();
        assert_eq!(judge(&then, &now, false), []);
    }

    #[test]
    fn names_that_the_server_made_up_are_numbers() {
        let generated = |name: &str| {
            let mut side = Side::default();
            let mut object = map(name, "x", name);
            object["metadata"]["generateName"] = json!("a-");
            side.note(id(name), object, false, true);
            side
        };
        let compared = judge(&generated("a-x7bcd"), &generated("a-k2bcd"), false);
        assert_eq!(
            compared.iter().map(|one| (one.object.name(), one.verdict)).collect::<Vec<_>>(),
            [("a-1", Verdict::Same)]
        );
    }

    #[test]
    fn of_secrets_that_are_hashed_the_keys_are_compared() {
        let secret = |value: &str| {
            let mut side = Side::default();
            let object = json!({"kind": "Secret", "metadata": {"name": "s", "namespace": "d"}, "data": {"password": value}});
            side.note(ObjectId::new("/secrets", "d/s"), object, false, true);
            side
        };
        assert_eq!(judge(&secret("hash"), &secret("plain"), true)[0].verdict, Verdict::Same);
        assert_eq!(judge(&secret("hash"), &secret("plain"), false)[0].verdict, Verdict::Different);
    }
}
