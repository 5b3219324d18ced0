//! State: what an operator has made of what it was asked for, without what differs from run to run.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_meta::quantity::Quantity;
use serde::Serialize;
use serde_json::Value;

use crate::{
    record, stable,
    story::{Did, ObjectId, Who, Write},
};

/// What the trial adds to objects: a label and an annotation of this name.
pub const ADDITION: &str = "trial.kubewright.dev/note";
/// How the names of what the trial writes into metadata begin.
const DOMAIN: &str = "trial.kubewright.dev/";
/// The owner that the trial gives to objects.
pub const OWNER: &str = "trial-owner";

/// Claims of StatefulSets: what was kept in them is what users miss most.
pub(crate) const CLAIMS: &str = "/persistentvolumeclaims";
/// Is there in a claim that a built-in controller has made.
pub(crate) const OF_CLUSTER: &str = "<made by the cluster>";
/// Stands behind a number that is a resource version of one of the samples.
const VERSION: &str = "<resourceVersion>";
/// Stands, with the object, for the uid of one that went and came again.
const EARLIER: &str = "<uid of an earlier ";
/// What a claim asks for.
const STORAGE: &str = "/spec/resources/requests/storage";

/// The objects that the program wrote, the samples, and claims, each as it is at a moment. Generated names are numbers.
pub type State = BTreeMap<ObjectId, Value>;

/// The state after writes, of which the first is the first of the run. Of objects of built-in kinds the status is left out, as nobody
/// but built-in controllers writes it; of others it is kept if the program wrote it.
#[must_use]
pub fn state(writes: &[Write], samples: &[ObjectId]) -> State {
    let mut last: BTreeMap<&ObjectId, &Write> = BTreeMap::new();
    let mut uids: BTreeMap<&str, &ObjectId> = BTreeMap::new();
    let (mut theirs, mut reported) = (BTreeSet::new(), BTreeSet::new());
    let versions: BTreeSet<&str> = writes
        .iter()
        .filter(|write| samples.contains(&write.id))
        .filter_map(|write| write.object["metadata"]["resourceVersion"].as_str())
        .collect();
    for write in writes {
        last.insert(&write.id, write);
        if let Some(uid) = write.object["metadata"]["uid"].as_str() {
            uids.insert(uid, &write.id);
        }
        if write.by != Who::Program && write.did == Did::Create {
            // What somebody else has made again is that one's, whoever deleted what was there before.
            theirs.remove(&write.id);
            reported.remove(&write.id);
        }
        if write.by == Who::Program && !crate::story::is_upkeep(&write.id.collection) {
            theirs.insert(&write.id);
            if write.subresource == "status" {
                reported.insert(&write.id);
            }
        }
    }
    theirs.extend(samples);
    let generated: BTreeMap<&str, &str> =
        writes.iter().filter_map(|write| stable::generated_name(&write.object)).collect();
    let is_there = |write: &Write| write.did != Did::Delete;
    let current = |uid: &str| {
        let id = uids.get(uid)?;
        let write = last.get(*id).filter(|write| is_there(write))?;
        // Of an object that went and came again under its name, the old uid leads nowhere.
        Some(
            (write.object["metadata"]["uid"] == *uid)
                .then_some(*id)
                .map_or_else(|| format!("{EARLIER}{id}>"), |id| format!("<uid of {id}>")),
        )
    };
    let there = last
        .iter()
        .filter(|(id, write)| (theirs.contains(*id) || id.collection == CLAIMS) && is_there(write));
    let mut objects: Vec<(String, Value)> = there
        .map(|(id, write)| {
            let is_sample = samples.contains(*id);
            let has_status = reported.contains(*id) || is_sample && !is_built_in(&id.collection);
            let mut object = stable::without_volatile(&write.object, has_status, &current);
            relate_generations(&mut object, write.object["metadata"]["generation"].as_i64());
            sort_conditions(&mut object);
            sort_maps(&mut object);
            if object["metadata"]["annotations"].is_object() {
                let of_object = writes.iter().filter(|write| write.id == **id);
                record::mark_records(&mut object, &of_object.map(|write| &write.object).collect::<Vec<_>>());
            }
            remove_additions(&mut object);
            mark_versions(&mut object, &versions);
            stable::same_generated_names(&mut object, &generated);
            if is_sample {
                remove_zeros(&mut object["spec"]);
            }
            if !theirs.contains(*id) {
                object[OF_CLUSTER] = true.into();
            }
            (id.collection.clone(), object)
        })
        .collect();
    stable::rename_generated(&mut objects);
    let named =
        objects.into_iter().map(|(collection, object)| (ObjectId::new(collection, key(&object)), object));
    named.collect()
}

fn key(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match (text("namespace"), text("name")) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// Whether a collection is one of Kubernetes' own, whose statuses its controllers write: by its group.
fn is_built_in(collection: &str) -> bool {
    let group = collection.split_once('/').map_or("", |(group, _)| group);
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// What stands before the last part of a name, where that looks like a hash.
pub(crate) fn before_hash(id: &ObjectId) -> Option<&str> {
    let (stem, end) = id.key.rsplit_once('-')?;
    let is_hash = end.len() >= 5
        && end.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
        && end.chars().any(|letter| letter.is_ascii_digit());
    is_hash.then_some(stem)
}

/// How often something was changed differs by the way to it: an `observedGeneration` is the current one, or behind.
fn relate_generations(value: &mut Value, generation: Option<i64>) {
    let Some(generation) = generation else { return };
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match generation_of(field).filter(|_| name == "observedGeneration") {
                    Some(observed) if observed == generation => *field = "<current>".into(),
                    Some(_) => *field = "<not current>".into(),
                    None => relate_generations(field, Some(generation)),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| relate_generations(item, Some(generation))),
        _ => {}
    }
}

/// A generation: a number, which some kinds write as a text.
pub(crate) fn generation_of(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// Marks the texts that are resource versions of samples, which some programs write into labels, annotations and statuses: which number
/// it is says nothing.
fn mark_versions(value: &mut Value, versions: &BTreeSet<&str>) {
    match value {
        Value::String(text) if versions.contains(text.as_str()) => text.push_str(VERSION),
        Value::Array(items) => items.iter_mut().for_each(|item| mark_versions(item, versions)),
        Value::Object(fields) => fields.values_mut().for_each(|field| mark_versions(field, versions)),
        _ => {}
    }
}

/// Whether two values stand for uids of which one is not known: that of what was there before the story, and was not written in it.
fn are_uids(one: &Value, other: &Value) -> bool {
    let is_unknown = |value: &Value| value == stable::UID;
    let is_known = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("<uid of "));
    let is_earlier = |value: &Value| value.as_str().is_some_and(|text| text.starts_with(EARLIER));
    let is_one = |one: &Value, other: &Value| is_unknown(one) && is_known(other) && !is_earlier(other);
    is_one(one, other) || is_one(other, one)
}

/// Whether two values are resource versions of samples, each in its own story; or one of them is, and the other the same number.
fn are_versions(one: &Value, other: &Value) -> bool {
    match (one.as_str(), other.as_str()) {
        (Some(one), Some(other)) => match (one.strip_suffix(VERSION), other.strip_suffix(VERSION)) {
            (Some(_), Some(_)) => true,
            (Some(number), None) => number == other,
            (None, Some(number)) => one == number,
            (None, None) => false,
        },
        _ => false,
    }
}

/// Removes what a program in Go leaves out when it writes a sample back: `false`, `0` and `""`.
fn remove_zeros(value: &mut Value) {
    let is_zero = |value: &Value| {
        *value == Value::Bool(false) || value.as_i64() == Some(0) || value.as_str() == Some("")
    };
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !is_zero(field));
            fields.values_mut().for_each(remove_zeros);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_zeros),
        _ => {}
    }
}

/// What the trial itself has added is no work of the operator: neither in the object, nor in templates that it was handed on to, nor in a
/// record of the object as it was last handled or applied, which is a text.
fn remove_additions(object: &mut Value) {
    if let Some(owners) = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) {
        owners.retain(|owner| owner["name"] != OWNER);
    }
    remove_notes(object);
}

/// Removes labels and annotations of the trial, however deep.
fn remove_notes(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for map in ["labels", "annotations"] {
                let Some(entries) = fields.get_mut(map).and_then(Value::as_object_mut) else { continue };
                let count = entries.len();
                entries.retain(|name, _| !name.starts_with(DOMAIN));
                entries.values_mut().for_each(remove_from_record);
                if entries.is_empty() && count > 0 {
                    fields.remove(map);
                }
            }
            fields.values_mut().for_each(remove_notes);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_notes),
        _ => {}
    }
}

/// The same in an object that is written down as a text.
fn remove_from_record(text: &mut Value) {
    let record = text.as_str().filter(|text| text.starts_with('{')).map(serde_json::from_str::<Value>);
    if let Some(Ok(mut record)) = record {
        remove_additions(&mut record);
        *text = record.to_string().into();
    }
}

/// Whether a status says that all is done: by a condition, or by a field of its own, of a generation that is the current one.
pub(crate) fn is_ready(status: &Value, is_current: impl Fn(&Value) -> bool) -> bool {
    let is_of_now = |observed: &Value| observed.is_null() || is_current(observed);
    let is_true = |condition: &Value| {
        matches!(condition["type"].as_str(), Some("Ready" | "Available"))
            && condition["status"] == "True"
            && is_of_now(&condition["observedGeneration"])
    };
    is_of_now(&status["observedGeneration"])
        && (status["ready"] == true
            || status["conditions"].as_array().is_some_and(|all| all.iter().any(is_true)))
}

/// Whether a status says that what was asked for has been done once and for all: by its phase, or by the condition that Jobs have. (Others,
/// such as `Succeeded` and `Completed`, some operators say of a state that goes on.)
pub(crate) fn is_completed(status: &Value) -> bool {
    let phase = status["phase"].as_str().map(str::to_lowercase);
    phase.is_some_and(|phase| ["complete", "completed", "done", "finished"].contains(&phase.as_str()))
        || status["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["status"] == "True" && one["type"] == "Complete"))
}

/// Conditions are a map by their type, in whatever order they came.
fn sort_conditions(object: &mut Value) {
    if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        conditions.sort_by_key(|condition| condition["type"].to_string());
    }
}

/// Lists that the API calls maps or sets (`x-kubernetes-list-type`), and by what their items are known.
const MAPS: [(&str, &[&str]); 8] = [
    ("ports", &["port", "containerPort", "protocol"]),
    ("volumes", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("imagePullSecrets", &["name"]),
    ("ownerReferences", &["kind", "name"]),
    ("hostAliases", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("finalizers", &[]),
];

/// Sorts the lists whose order says nothing: some programs make them of maps of theirs.
fn sort_maps(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let (Some((_, keys)), Some(items)) =
                    (MAPS.iter().find(|(known, _)| known == name), field.as_array_mut())
                {
                    let key = |item: &Value| match keys {
                        [] => item.to_string(),
                        keys => keys.iter().map(|key| format!("{:>9} ", item[*key].to_string())).collect(),
                    };
                    items.sort_by_cached_key(key);
                }
                sort_maps(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(sort_maps),
        _ => {}
    }
}

/// One place at which two states differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difference {
    /// Which object.
    pub id: ObjectId,
    /// Where in it, such as `/spec/replicas`; empty where the object is there on one side alone.
    pub field: String,
    /// What was expected, as JSON; none where nothing was.
    pub expected: Option<String>,
    /// What was reached.
    pub reached: Option<String>,
}

impl Difference {
    /// In a line.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { id, field, expected, reached } = self;
        match (field.is_empty(), expected, reached) {
            (true, Some(_), _) => format!("{id} is not there"),
            (true, None, _) => format!("{id} is there, and is not to be"),
            (_, Some(expected), Some(reached)) => format!("{id}: {field} is {reached}, not {expected}"),
            (_, Some(expected), None) => format!("{id}: {field} is not there; it is to be {expected}"),
            (_, None, Some(reached)) => format!("{id}: {field} is {reached}, and is not to be there"),
            (_, None, None) => format!("{id}: {field}"),
        }
    }
}

/// Places that differ between runs in which nothing went wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Volatile {
    places: BTreeSet<(ObjectId, String)>,
}

impl Volatile {
    /// Learns from two states that ought to be alike.
    pub fn learn(&mut self, one: &State, other: &State) {
        self.places
            .extend(differences(one, other, &Self::default()).into_iter().map(|one| (one.id, one.field)));
    }

    /// What is known to differ.
    pub fn places(&self) -> impl Iterator<Item = &(ObjectId, String)> {
        self.places.iter()
    }

    /// Whether something in an object differs by itself, such as a generated password.
    pub(crate) fn is_in(&self, id: &ObjectId) -> bool {
        self.places.iter().any(|(known, field)| known == id && !field.is_empty())
    }

    /// Whether an object has another name in each run, but for what stands before a hash in it: such a hash is made of a uid.
    fn names_anew(&self, id: &ObjectId) -> bool {
        before_hash(id).is_some_and(|stem| {
            let is_it =
                |known: &ObjectId| known.collection == id.collection && before_hash(known) == Some(stem);
            self.places.iter().any(|(known, place)| place.is_empty() && is_it(known))
        })
    }

    /// Whether a place is one that differs by itself, or below one.
    #[must_use]
    pub fn has(&self, id: &ObjectId, field: &str) -> bool {
        self.places.iter().any(|(known, place)| {
            known == id
                && field
                    .strip_prefix(place.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// Where `reached` is not as `expected`, in the order of the objects.
#[must_use]
pub fn differences(expected: &State, reached: &State, volatile: &Volatile) -> Vec<Difference> {
    let mut found = Vec::new();
    let ids: BTreeSet<&ObjectId> = expected.keys().chain(reached.keys()).collect();
    for id in ids {
        let (one, other) = (expected.get(id), reached.get(id));
        let mut place = |field: &str, expected: Option<&Value>, reached: Option<&Value>| {
            if !volatile.has(id, field) && !is_of_claims(id, field, expected, reached) {
                found.push(Difference {
                    id: id.clone(),
                    field: field.to_owned(),
                    expected: expected.map(Value::to_string),
                    reached: reached.map(Value::to_string),
                });
            }
        };
        match (one, other) {
            (Some(one), Some(other)) => compare(one, other, "", &mut place),
            // A StatefulSet leaves its claims where it is made smaller.
            (None, Some(other)) if other[OF_CLUSTER] == true => {}
            (None, Some(_)) if volatile.names_anew(id) && count(reached, id) <= count(expected, id) => {}
            (one, other) => place("", one, other),
        }
    }
    found
}

/// How many objects have the name of this one but for the hash at its end.
fn count(state: &State, id: &ObjectId) -> usize {
    let is_alike = |one: &&ObjectId| one.collection == id.collection && before_hash(one) == before_hash(id);
    state.keys().filter(is_alike).count()
}

/// Whether a difference is one of claims that no program can help: who made it, and that it cannot become smaller.
fn is_of_claims(id: &ObjectId, field: &str, expected: Option<&Value>, reached: Option<&Value>) -> bool {
    let amount = |value: Option<&Value>| value.and_then(Quantity::of);
    id.collection == CLAIMS
        && (field.strip_prefix('/') == Some(OF_CLUSTER)
            || field == STORAGE && amount(reached) > amount(expected))
}

/// Whether a value says nothing: a map does not in whose fields there is nothing either.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

/// Whether two values are quantities that are only written otherwise: a program in Go writes `2` for `2000m`.
fn is_same_amount(one: &Value, other: &Value) -> bool {
    match (Quantity::of(one), Quantity::of(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// Whether a list is one of conditions: a map by their types.
fn are_conditions(path: &str, items: &[Value]) -> bool {
    path.ends_with("/conditions")
        && items.iter().all(|item| item["type"].is_string() && item["status"].is_string())
}

/// Takes a place with both values.
type Found<'a> = dyn FnMut(&str, Option<&Value>, Option<&Value>) + 'a;

/// Tells the smallest places at which two values differ.
fn compare(one: &Value, other: &Value, path: &str, found: &mut Found<'_>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                match (one.get(name), other.get(name)) {
                    (Some(one), Some(other)) => compare(one, other, &path, found),
                    // To a program in Go what is empty is as good as not there, and goes when it writes the object.
                    (None, Some(empty)) | (Some(empty), None) if is_empty(empty) => {}
                    (one, other) => found(&path, one, other),
                }
            }
        }
        (Value::Array(one), Value::Array(other))
            if are_conditions(path, one) && are_conditions(path, other) =>
        {
            let kinds: BTreeSet<&str> =
                one.iter().chain(other).filter_map(|item| item["type"].as_str()).collect();
            let of = |items: &'_ [Value], kind: &str| items.iter().find(|item| item["type"] == kind).cloned();
            for kind in kinds {
                let path = format!("{path}/{kind}");
                match (of(one, kind), of(other, kind)) {
                    (Some(one), Some(other)) => compare(&one, &other, &path, found),
                    // A condition that is not there is not true (API conventions).
                    (None, Some(only)) | (Some(only), None) if only["status"] == "False" => {}
                    (one, other) => found(&path, one.as_ref(), other.as_ref()),
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (place, (one, other)) in one.iter().zip(other).enumerate() {
                compare(one, other, &format!("{path}/{place}"), found);
            }
        }
        _ if one != other
            && !is_same_amount(one, other)
            && !are_versions(one, other)
            && !are_uids(one, other) =>
        {
            found(path, Some(one), Some(other));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn write(key: &str, did: Did, by: Who, object: Value) -> Write {
        let id = ObjectId::new("/configmaps", key);
        Write { at: Duration::ZERO, id, did, by, subresource: String::new(), object }
    }

    fn map(name: &str, uid: &str, more: &Value) -> Value {
        let mut object =
            json!({"kind": "ConfigMap", "metadata": {"name": name, "namespace": "a", "uid": uid}});
        if let (Some(object), Some(more)) = (object.as_object_mut(), more.as_object()) {
            object.extend(more.clone());
        }
        object
    }

    #[test]
    fn what_the_program_deleted_and_the_cluster_made_again_is_not_the_programs() {
        let written = |again: Who| {
            let writes = [
                write("a/pod", Did::Update, Who::Program, map("pod", "1", &json!({}))),
                write("a/pod", Did::Delete, Who::Program, map("pod", "1", &json!({}))),
                write("a/pod", Did::Create, again, map("pod", "2", &json!({}))),
            ];
            state(&writes, &[]).len()
        };
        assert_eq!((written(Who::Cluster), written(Who::Program)), (0, 1));
    }

    #[test]
    fn a_resource_version_of_a_sample_that_is_written_down_elsewhere_is_any() {
        let owner = ObjectId::new("/configmaps", "a/owner");
        let noted = |version: &str, note: &str| {
            let mut sample = map("owner", "1", &json!({}));
            sample["metadata"]["resourceVersion"] = version.into();
            let mut object = map("a", "2", &json!({}));
            object["metadata"]["labels"] = json!({"owner-rv": note});
            let writes = [
                write("a/owner", Did::Create, Who::Trial, sample),
                write("a/a", Did::Create, Who::Program, object),
            ];
            state(&writes, std::slice::from_ref(&owner))
        };
        let differ = |one: &State, other: &State| differences(one, other, &Volatile::default()).len();
        assert_eq!(differ(&noted("240", "240"), &noted("311", "311")), 0);
        assert_eq!(differ(&noted("240", "240"), &noted("311", "240")), 0, "the same number");
        assert_eq!(differ(&noted("240", "240"), &noted("311", "3")), 1);
    }

    #[test]
    fn the_order_of_lists_that_are_maps_says_nothing() {
        let of = |ports: Value| {
            let more = json!({"spec": {"ports": ports, "args": ["b", "a"]}});
            state(&[write("a/a", Did::Create, Who::Program, map("a", "1", &more))], &[])
        };
        let differ = |one: Value, other: Value| differences(&of(one), &of(other), &Volatile::default()).len();
        let (http, amqp) = (json!({"port": 80, "name": "http"}), json!({"port": 5672, "name": "amqp"}));
        assert_eq!(differ(json!([http, amqp]), json!([amqp, http])), 0);
        assert_eq!(differ(json!([http, amqp]), json!([{"port": 80, "name": "web"}, amqp])), 1);
    }

    #[test]
    fn names_that_are_others_in_each_run_are_counted() {
        let of = |names: &[&str]| -> State {
            names.iter().map(|name| (ObjectId::new("g/workloads", format!("a/{name}")), json!({}))).collect()
        };
        let mut volatile = Volatile::default();
        volatile.learn(&of(&["job-75be5"]), &of(&["job-1a2b3"]));
        let differ = |reached: &[&str]| differences(&of(&["job-75be5"]), &of(reached), &volatile).len();
        assert_eq!(differ(&["job-9c8d7"]), 0);
        assert_eq!(differ(&["job-9c8d7", "job-6b5a4"]), 2, "one too many, whichever it is");
        assert_eq!(differ(&["job-9c8d7", "other-6b5a4"]), 1);
    }

    #[test]
    fn what_has_completed_says_so_by_its_phase_or_a_condition() {
        assert!(is_completed(&json!({"phase": "DONE"})));
        assert!(is_completed(&json!({"conditions": [{"type": "Complete", "status": "True"}]})));
        assert!(!is_completed(&json!({"conditions": [{"type": "Complete", "status": "False"}]})));
        assert!(!is_completed(&json!({"phase": "Running"})));
    }

    #[test]
    fn a_generation_may_be_a_text() {
        let mut object = json!({"status": {"observedGeneration": "2"}});
        relate_generations(&mut object, Some(2));
        assert_eq!(object["status"]["observedGeneration"], "<current>");
    }

    #[test]
    fn a_uid_that_is_known_in_one_story_alone_is_the_same() {
        let of = |uid: &str| State::from([(ObjectId::new("/endpoints", "a"), json!({"uid": uid}))]);
        let differ = |one: &str, other: &str| differences(&of(one), &of(other), &Volatile::default()).len();
        assert_eq!(differ("<uid>", "<uid of nodes node-0>"), 0);
        assert_eq!(differ("<uid>", "<uid of an earlier nodes node-0>"), 1);
        assert_eq!(differ("<uid of pods a>", "<uid of nodes node-0>"), 1);
    }

    #[test]
    fn what_the_trial_has_added_is_left_out_of_records_too() {
        let record = |metadata: &str| {
            let text = format!(r#"{{"spec": {{"size": 1}}, "metadata": {{{metadata}}}}}"#);
            let mut object = map("a", "1", &json!({}));
            object["metadata"]["annotations"] = json!({"x.dev/last-handled": text});
            state(&[write("a/a", Did::Update, Who::Program, object)], &[])
        };
        assert!(
            differences(
                &record(""),
                &record(r#""annotations": {"trial.kubewright.dev/looked-at":"1"}"#),
                &Volatile::default()
            )
            .is_empty()
        );
    }

    #[test]
    fn a_condition_that_is_false_is_as_good_as_one_that_is_not_there() {
        let of = |conditions: Value| {
            State::from([(ObjectId::new("g/pages", "a"), json!({"status": {"conditions": conditions}}))])
        };
        let ready = json!({"type": "Ready", "status": "True"});
        let paused = |status: &str| json!({"type": "Paused", "status": status});
        let places = |one: Value, other: Value| -> Vec<String> {
            differences(&of(one), &of(other), &Volatile::default()).into_iter().map(|one| one.field).collect()
        };
        assert_eq!(places(json!([ready]), json!([ready, paused("False")])), [""; 0]);
        assert_eq!(places(json!([ready]), json!([ready, paused("True")])), ["/status/conditions/Paused"]);
        assert_eq!(
            places(json!([ready, paused("True")]), json!([ready, paused("False")])),
            ["/status/conditions/Paused/status"]
        );
    }

    #[test]
    fn the_state_has_what_the_program_wrote_and_what_is_there() {
        let writes = [
            write("a/one", Did::Create, Who::Program, map("one", "1", &json!({"data": {"a": "1"}}))),
            write("a/one", Did::Update, Who::Trial, map("one", "1", &json!({"data": {"a": "2"}}))),
            write("a/two", Did::Create, Who::Program, map("two", "2", &json!({}))),
            write("a/two", Did::Delete, Who::Cluster, map("two", "2", &json!({}))),
            write("a/three", Did::Create, Who::Cluster, map("three", "3", &json!({}))),
        ];
        let state = state(&writes, &[]);
        assert_eq!(state.keys().map(|id| &*id.key).collect::<Vec<_>>(), ["a/one"]);
        assert_eq!(state.values().next().expect("one")["data"]["a"], "2");
    }

    #[test]
    fn what_the_trial_itself_has_added_is_no_part_of_the_state() {
        let metadata = json!({"name": "one", "namespace": "a", "uid": "1"});
        let plain =
            write("a/one", Did::Create, Who::Program, json!({"kind": "ConfigMap", "metadata": metadata}));
        let mut extended = plain.clone();
        let added = json!({"labels": {ADDITION: "theirs"}, "annotations": {"trial.kubewright.dev/looked-at": "yes"},
            "ownerReferences": [{"kind": "ConfigMap", "name": OWNER, "uid": "2"}]});
        let fields = extended.object["metadata"].as_object_mut().zip(added.as_object());
        let (metadata, added) = fields.expect("metadata");
        metadata.extend(added.clone());
        let found = differences(&state(&[plain], &[]), &state(&[extended], &[]), &Volatile::default());
        assert_eq!(found, []);
    }

    #[test]
    fn an_owner_that_came_again_is_told_from_the_one_that_went() {
        let uid = |number: u8| format!("0f8fad5b-d9cb-469f-a165-7086772895{number:02}");
        let owned = map("child", "x", &json!({"data": {"owner": uid(1)}}));
        let mut writes = vec![
            write("a/owner", Did::Create, Who::Program, map("owner", &uid(1), &json!({}))),
            write("a/child", Did::Create, Who::Program, owned),
        ];
        let owner = |writes: &[Write]| {
            state(writes, &[])[&ObjectId::new("/configmaps", "a/child")]["data"]["owner"].clone()
        };
        assert_eq!(owner(&writes), "<uid of configmaps a/owner>");
        writes.push(write("a/owner", Did::Create, Who::Program, map("owner", &uid(2), &json!({}))));
        assert_eq!(owner(&writes), "<uid of an earlier configmaps a/owner>");
    }

    #[test]
    fn how_often_an_object_was_changed_does_not_count() {
        let page = |generation: i64, observed: i64| {
            let mut page = map("p", "1", &json!({"status": {"observedGeneration": observed}}));
            page["metadata"]["generation"] = generation.into();
            let mut write = write("a/p", Did::Update, Who::Program, page);
            "status".clone_into(&mut write.subresource);
            state(&[write], &[])
        };
        assert_eq!(page(1, 1), page(3, 3));
        assert_ne!(page(3, 3), page(3, 1));
    }

    #[test]
    fn a_zero_in_the_spec_of_a_sample_is_as_good_as_absent() {
        let id = ObjectId::new("/configmaps", "a/one");
        let state = |spec: Value| {
            let sample = map("one", "1", &json!({"spec": spec}));
            state(&[write("a/one", Did::Create, Who::Trial, sample)], std::slice::from_ref(&id))
        };
        let zeros = json!({"on": false, "name": "", "list": [{"count": 0, "a": 1}]});
        assert_eq!(state(zeros), state(json!({"list": [{"a": 1}]})));
    }

    #[test]
    fn what_is_empty_is_as_good_as_absent() {
        let state = |object: Value| State::from([(ObjectId::new("/pods", "a/b"), object)]);
        let (one, other) = (state(json!({"spec": {"list": [], "map": {}}})), state(json!({"spec": {}})));
        assert_eq!(differences(&one, &other, &Volatile::default()), []);
        let count =
            |one: Value, other: Value| differences(&state(one), &state(other), &Volatile::default()).len();
        assert_eq!(count(json!({"a": 0}), json!({})), 1);
        assert_eq!(count(json!({"backend": {"external": {}}}), json!({})), 0);
        assert_eq!(count(json!({"backend": {"external": {"name": "x"}}}), json!({})), 1);
        assert_eq!(count(json!({"list": [{}]}), json!({})), 1);
    }

    #[test]
    fn claims_of_stateful_sets_are_compared_and_may_be_more_and_larger() {
        let claim = |name: &str, storage: &str| {
            let more = json!({"spec": {"resources": {"requests": {"storage": storage}}}});
            let mut write = write(&format!("a/{name}"), Did::Create, Who::Cluster, map(name, "1", &more));
            CLAIMS.clone_into(&mut write.id.collection);
            write
        };
        let state = |claims: &[(&str, &str)]| {
            let writes: Vec<Write> = claims.iter().map(|(name, storage)| claim(name, storage)).collect();
            state(&writes, &[])
        };
        let count = |one: &[(&str, &str)], other: &[(&str, &str)]| {
            differences(&state(one), &state(other), &Volatile::default()).len()
        };
        assert_eq!(count(&[("d-0", "1Gi")], &[("d-0", "2Gi"), ("d-1", "1Gi")]), 0);
        assert_eq!(count(&[("d-0", "2Gi")], &[("d-0", "1Gi")]), 1);
        assert_eq!(count(&[("d-0", "1Gi")], &[]), 1);
    }

    #[test]
    fn a_quantity_that_is_written_otherwise_is_the_same() {
        let state = |amount: Value| State::from([(ObjectId::new("/pods", "a/b"), json!({"limit": amount}))]);
        let count =
            |one: Value, other: Value| differences(&state(one), &state(other), &Volatile::default()).len();
        assert_eq!(count("2000m".into(), 2.into()), 0);
        assert_eq!(count("1Gi".into(), "1024Mi".into()), 0);
        assert_eq!(count("1Gi".into(), "1G".into()), 1);
    }

    #[test]
    fn the_smallest_places_that_differ_are_told_but_for_those_that_always_do() {
        let state = |object: Value| State::from([(ObjectId::new("/pods", "a/b"), object)]);
        let one = state(json!({"a": {"b": 1, "c": [1, 2]}, "d": 1}));
        let other = state(json!({"a": {"b": 2, "c": [1, 3]}, "e": 1}));
        let places = |volatile: &Volatile| -> Vec<String> {
            differences(&one, &other, volatile).into_iter().map(|one| one.field).collect()
        };
        assert_eq!(places(&Volatile::default()), ["/a/b", "/a/c/1", "/d", "/e"]);
        let mut volatile = Volatile::default();
        volatile.learn(&one, &state(json!({"a": {"b": 3, "c": [4, 2]}, "d": 1})));
        assert_eq!(places(&volatile), ["/a/c/1", "/d", "/e"]);
    }
}
