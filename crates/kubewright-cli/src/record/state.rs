//! What a recorder knows of the objects that it has seen: of each its version, so that what it missed can be found.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::{ResourceExt, api::DynamicObject, runtime::watcher::Event};
use kubewright_recording::{Author, Did, Record, Redactor, Write};
use serde_json::{Value, json, value::to_raw_value};

use super::kinds::Watched;

/// Objects by key, and the version and uid of each.
type Known = BTreeMap<String, Seen>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    version: String,
    uid: String,
}

/// What is known of all objects.
pub(crate) struct State {
    redactor: Redactor,
    /// By collection.
    known: BTreeMap<String, Known>,
    /// The keys of a list that is read, by collection.
    listed: BTreeMap<String, BTreeSet<String>>,
    /// Collections that were listed once, in this recording or one that it goes on with.
    complete: BTreeSet<String>,
    is_resumed: bool,
    writes: u64,
}

impl State {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            known: BTreeMap::new(),
            listed: BTreeMap::new(),
            complete: BTreeSet::new(),
            is_resumed: false,
            writes: 0,
        }
    }

    /// Whether it goes on with an earlier recording.
    pub(crate) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// How many writes there were.
    pub(crate) fn writes(&self) -> u64 {
        self.writes
    }

    /// Takes in what was recorded before.
    pub(crate) fn learn(&mut self, record: &Record) {
        self.is_resumed = true;
        let Record::Write(write) = record else { return };
        let known = self.known.entry(write.collection.clone()).or_default();
        self.complete.insert(write.collection.clone());
        if write.did == Did::Delete {
            known.remove(&write.key);
        } else {
            let object: Value = serde_json::from_str(write.object.get()).unwrap_or_default();
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            known.insert(write.key.clone(), Seen { version: text("resourceVersion"), uid: text("uid") });
        }
    }

    /// What an event of a watch says that was not known.
    ///
    /// # Errors
    /// When an object is no JSON.
    pub(crate) fn observe(
        &mut self,
        kind: &Watched,
        event: Event<DynamicObject>,
        now: Timestamp,
    ) -> serde_json::Result<Vec<Write>> {
        let collection = kind.collection();
        let writes = match event {
            Event::Init => {
                self.listed.insert(collection, BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(object) => {
                self.listed.entry(collection.clone()).or_default().insert(key(&object));
                // What is there when the recording begins was not missed.
                let missed = self.complete.contains(&collection);
                self.put(kind, object, now, missed)?.into_iter().collect()
            }
            Event::InitDone => self.forget(kind, now)?,
            Event::Apply(object) => self.put(kind, object, now, false)?.into_iter().collect(),
            Event::Delete(object) => {
                let known = self.known.entry(collection).or_default().remove(&key(&object));
                if known.is_some() {
                    vec![self.write(kind, object, Did::Delete, now, false)?]
                } else {
                    Vec::new()
                }
            }
        };
        self.writes += writes.len() as u64;
        Ok(writes)
    }

    fn put(
        &mut self,
        kind: &Watched,
        object: DynamicObject,
        now: Timestamp,
        inferred: bool,
    ) -> serde_json::Result<Option<Write>> {
        let seen = Seen {
            version: object.resource_version().unwrap_or_default(),
            uid: object.uid().unwrap_or_default(),
        };
        let known = self.known.entry(kind.collection()).or_default();
        let before = known.insert(key(&object), seen.clone());
        let did = match before {
            Some(before) if before == seen => return Ok(None),
            Some(_) => Did::Update,
            None => Did::Create,
        };
        self.write(kind, object, did, now, inferred).map(Some)
    }

    /// The objects that a list does not have any more: nobody saw them go.
    fn forget(&mut self, kind: &Watched, now: Timestamp) -> serde_json::Result<Vec<Write>> {
        let collection = kind.collection();
        self.complete.insert(collection.clone());
        let Some(listed) = self.listed.remove(&collection) else { return Ok(Vec::new()) };
        let known = self.known.entry(collection.clone()).or_default();
        let gone: Vec<(String, Seen)> = known
            .iter()
            .filter(|(key, _)| !listed.contains(*key) && kind.has(key))
            .map(|(key, seen)| (key.clone(), seen.clone()))
            .collect();
        gone.into_iter()
            .map(|(key, seen)| {
                known.remove(&key);
                let (namespace, name) = key.split_once('/').map_or((None, &*key), |(a, b)| (Some(a), b));
                let (version, kind) = (&kind.resource.api_version, &kind.resource.kind);
                let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {
                    "name": name, "uid": seen.uid, "resourceVersion": seen.version}});
                if let Some(namespace) = namespace {
                    object["metadata"]["namespace"] = namespace.into();
                }
                Ok(Write {
                    revision: seen.version.parse().unwrap_or_default(),
                    time: now,
                    by: Author::default(),
                    did: Did::Delete,
                    inferred: true,
                    collection: collection.clone(),
                    key,
                    object: to_raw_value(&object)?,
                })
            })
            .collect()
    }

    fn write(
        &self,
        kind: &Watched,
        mut object: DynamicObject,
        did: Did,
        now: Timestamp,
        inferred: bool,
    ) -> serde_json::Result<Write> {
        let (collection, key) = (kind.collection(), key(&object));
        let revision = object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default();
        let by = Author { user: String::new(), program: last_manager(&object) };
        // In a list objects do not say it.
        object.types.get_or_insert_with(|| kube::api::TypeMeta {
            api_version: kind.resource.api_version.clone(),
            kind: kind.resource.kind.clone(),
        });
        let mut object = serde_json::to_value(&object)?;
        self.redactor.redact(&collection, &mut object);
        Ok(Write { revision, time: now, by, did, inferred, collection, key, object: to_raw_value(&object)? })
    }
}

/// `default/web`; `web` where there is no namespace.
fn key(object: &DynamicObject) -> String {
    let name = object.name_any();
    object.namespace().map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"))
}

/// Who has written an object last, as far as its managed fields say.
fn last_manager(object: &DynamicObject) -> String {
    let managers = object.managed_fields().iter();
    let last = managers.max_by_key(|one| one.time.as_ref().map(|time| time.0));
    last.and_then(|one| one.manager.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kube::api::ApiResource;

    use super::*;

    fn secrets() -> Watched {
        let [group, version, api_version] = ["", "v1", "v1"].map(str::to_owned);
        let [kind, plural] = ["Secret", "secrets"].map(str::to_owned);
        let resource = ApiResource { group, version, api_version, kind, plural };
        Watched { resource, namespace: None, fields: None }
    }

    fn secret(name: &str, version: u64) -> DynamicObject {
        kubewright_objects::from_value(json!({
            "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
                "managedFields": [{"manager": "old", "time": "2026-01-01T00:00:00Z"}, {"manager": "new", "time": "2026-01-02T00:00:00Z"}]},
            "data": {"p": "c2VjcmV0"}
        }))
        .expect("an object")
    }

    fn state() -> State {
        State::new(Redactor::new(b"key", true, Vec::new()))
    }

    /// What each event is recorded as: what was done to what, and whether that was seen.
    fn recorded(state: &mut State, events: Vec<Event<DynamicObject>>) -> Vec<(Did, String, bool)> {
        let all = events
            .into_iter()
            .flat_map(|event| state.observe(&secrets(), event, Timestamp::UNIX_EPOCH).expect("JSON"));
        all.map(|write| (write.did, write.key, write.inferred)).collect()
    }

    fn list(objects: Vec<DynamicObject>) -> Vec<Event<DynamicObject>> {
        let middle = objects.into_iter().map(Event::InitApply);
        std::iter::once(Event::Init).chain(middle).chain([Event::InitDone]).collect()
    }

    #[test]
    fn what_a_second_list_has_otherwise_was_missed_and_is_recorded() {
        let mut state = state();
        let first = recorded(&mut state, list(vec![secret("a", 1), secret("b", 2), secret("c", 3)]));
        let key = |name: &str| format!("shop/{name}");
        assert_eq!(first, ["a", "b", "c"].map(|name| (Did::Create, key(name), false)));
        let second = recorded(&mut state, list(vec![secret("a", 1), secret("b", 9), secret("d", 8)]));
        assert_eq!(
            second,
            [(Did::Update, key("b"), true), (Did::Create, key("d"), true), (Did::Delete, key("c"), true)]
        );
        assert_eq!(state.writes(), 6);
    }

    #[test]
    fn what_a_watch_says_twice_is_recorded_once() {
        let mut state = state();
        let events =
            vec![Event::Apply(secret("a", 1)), Event::Apply(secret("a", 1)), Event::Apply(secret("a", 2))];
        let dids: Vec<Did> = recorded(&mut state, events).into_iter().map(|one| one.0).collect();
        assert_eq!(dids, [Did::Create, Did::Update]);
        let gone = vec![Event::Delete(secret("a", 3)), Event::Delete(secret("a", 3))];
        assert_eq!(recorded(&mut state, gone).len(), 1);
    }

    #[test]
    fn a_recording_that_is_gone_on_with_has_what_happened_meanwhile() {
        let mut before = state();
        let writes = list(vec![secret("a", 1), secret("b", 2)])
            .into_iter()
            .flat_map(|event| before.observe(&secrets(), event, Timestamp::UNIX_EPOCH).expect("JSON"));
        let mut state = state();
        writes.for_each(|write| state.learn(&Record::Write(write)));
        assert!(state.is_resumed());
        let since = recorded(&mut state, list(vec![secret("a", 1)]));
        assert_eq!(since, [(Did::Delete, "shop/b".to_owned(), true)]);
    }

    #[test]
    fn a_write_has_its_kind_who_wrote_last_and_no_secret() {
        let writes = state().observe(&secrets(), Event::Apply(secret("a", 7)), Timestamp::UNIX_EPOCH);
        let write = &writes.expect("JSON")[0];
        assert_eq!((write.revision, &*write.by.program, &*write.collection), (7, "new", "/secrets"));
        let text = write.object.get();
        assert!(text.contains("\"kind\":\"Secret\"") && !text.contains("c2VjcmV0"), "{text}");
    }
}
