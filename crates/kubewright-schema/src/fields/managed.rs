//! `metadata.managedFields`: who manages which fields
//! (`k8s.io/apimachinery/pkg/util/managedfields/internal/managedfields.go`).

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::set::Set;

/// How a manager came by its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply: these are its whole configuration.
    Apply,
    /// Any other write: these it has changed.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who manages fields: names that are told apart by operation, subresource and (for updates) version.
#[derive(Clone, Debug)]
pub struct Manager {
    /// The name that it gave itself.
    pub name: String,
    /// How it writes.
    pub operation: Operation,
    /// The version that it writes in. An applier has one entry whatever the version.
    pub api_version: String,
    /// What it writes to; empty for the object itself.
    pub subresource: String,
}

impl Manager {
    /// The text by which Kubernetes tells managers apart, and sorts them where nothing else does.
    #[must_use]
    pub fn identifier(&self) -> String {
        let mut text = format!(
            "{{\"manager\":{},\"operation\":\"{}\"",
            Value::from(self.name.as_str()),
            self.operation.name()
        );
        if self.operation == Operation::Update {
            text += &format!(",\"apiVersion\":{}", Value::from(self.api_version.as_str()));
        }
        if !self.subresource.is_empty() {
            text += &format!(",\"subresource\":{}", Value::from(self.subresource.as_str()));
        }
        text + "}"
    }
}

impl PartialEq for Manager {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }
}

impl Eq for Manager {}

/// The fields of one manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Who.
    pub manager: Manager,
    /// When they last changed (RFC 3339, UTC); entries that a scale made have none.
    pub time: Option<String>,
    /// Which.
    pub fields: Set,
}

/// The fields of all managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managed {
    /// One entry for each manager.
    pub entries: Vec<Entry>,
}

impl Managed {
    /// Reads `metadata.managedFields`. What is not there is empty.
    ///
    /// # Errors
    /// The first entry that makes no sense.
    pub fn decode(value: Option<&Value>) -> Result<Self, String> {
        let mut managed = Self::default();
        let entries = match value {
            None | Some(Value::Null) => return Ok(managed),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err("managedFields are not a list".to_owned()),
        };
        for (at, entry) in entries.iter().enumerate() {
            let entry = decode(at, entry)?;
            match managed.entry_mut(&entry.manager) {
                Some(same) => *same = entry,
                None => managed.entries.push(entry),
            }
        }
        Ok(managed)
    }

    /// As `metadata.managedFields`, in Kubernetes' order; nothing where nobody manages anything.
    #[must_use]
    pub fn encode(mut self) -> Option<Value> {
        if self.entries.is_empty() {
            return None;
        }
        self.entries.sort_by(order);
        Some(Value::Array(self.entries.iter().map(encode).collect()))
    }

    /// The entry of a manager.
    #[must_use]
    pub fn entry(&self, manager: &Manager) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.manager == *manager)
    }

    /// The entry of a manager, to be changed.
    pub fn entry_mut(&mut self, manager: &Manager) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.manager == *manager)
    }
}

/// Whether a client asks for all entries to be forgotten: `[]` or `[{}]`.
#[must_use]
pub(super) fn is_reset(value: Option<&Value>) -> bool {
    match value.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => one.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

fn decode(at: usize, entry: &Value) -> Result<Entry, String> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    if text("apiVersion").is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {at}")),
    }
    let fields = Set::decode(entry.get("fieldsV1").unwrap_or(&Value::Null))?;
    let manager = Manager {
        name: text("manager").to_owned(),
        operation,
        api_version: text("apiVersion").to_owned(),
        subresource: text("subresource").to_owned(),
    };
    Ok(Entry { manager, time: entry.get("time").and_then(Value::as_str).map(str::to_owned), fields })
}

fn encode(entry: &Entry) -> Value {
    let Manager { name, operation, api_version, subresource } = &entry.manager;
    let mut value = json!({
        "operation": operation.name(), "apiVersion": api_version, "fieldsType": "FieldsV1", "fieldsV1": entry.fields.encode()
    });
    for (key, text) in
        [("manager", Some(name)), ("subresource", Some(subresource)), ("time", entry.time.as_ref())]
    {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            value[key] = text.as_str().into();
        }
    }
    value
}

/// By operation, time, name, version and subresource. Times of one form sort as texts.
fn order(one: &Entry, other: &Entry) -> Ordering {
    let key = |entry: &Entry| entry.manager.operation;
    let texts = |entry: &'_ Entry| -> [String; 4] {
        let Manager { name, api_version, subresource, .. } = &entry.manager;
        [entry.time.clone().unwrap_or_default(), name.clone(), api_version.clone(), subresource.clone()]
    };
    key(one).cmp(&key(other)).then_with(|| texts(one).cmp(&texts(other)))
}

/// Leaves the times of the entries of `next` as they are in `current`, where nothing else has changed in the object, by `same`
/// (`k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager`, `IgnoreManagedFieldsTimestampsTransformer`).
pub fn keep_times(next: &mut Value, current: &Value, same: impl Fn(&Value, &Value) -> bool) {
    let old = &current["metadata"]["managedFields"];
    let new = &next["metadata"]["managedFields"];
    if new == old || !is_same_but_for_times(new, old) {
        return;
    }
    let made = next["metadata"]["managedFields"].take();
    next["metadata"]["managedFields"] = old.clone();
    if !same(next, current) {
        next["metadata"]["managedFields"] = made;
    }
}

fn is_same_but_for_times(one: &Value, other: &Value) -> bool {
    let (Some(ones), Some(others)) = (one.as_array(), other.as_array()) else { return false };
    let same = |one: &Value, other: &Value| match (one.as_object(), other.as_object()) {
        (Some(one), Some(other)) => {
            // One that has never changed the object has no time at all.
            let fields =
                |entry: &'_ Map<String, Value>| entry.iter().filter(|(key, _)| *key != "time").count();
            fields(one) == fields(other)
                && one.iter().all(|(key, value)| key == "time" || other.get(key) == Some(value))
        }
        _ => one == other,
    };
    ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| same(one, other))
}
