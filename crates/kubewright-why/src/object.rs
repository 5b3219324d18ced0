//! An object of whatever kind, as JSON, and short ways into it.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// An object of a cluster.
#[derive(Clone, Debug)]
pub struct Object(Value);

/// Which object: its kind with its group, and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Id {
    /// `apps`, or nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// `Deployment`.
    pub kind: String,
    /// Nothing for objects of the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Id {
    /// An object's id.
    #[must_use]
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
        Self { group, kind, namespace, name }
    }
}

/// As kubectl takes it: `deployment/web`.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.to_lowercase(), self.name)
    }
}

/// A condition of a status.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    pub(crate) observed_generation: Option<i64>,
}

impl Condition<'_> {
    /// `Ready=False (NotFound): no such bucket`.
    pub(crate) fn line(&self) -> String {
        let reason = if self.reason.is_empty() { String::new() } else { format!(" ({})", self.reason) };
        let message = if self.message.is_empty() { String::new() } else { format!(": {}", self.message) };
        format!("condition {}={}{reason}{message}", self.kind, self.status)
    }
}

/// A reference of `metadata.ownerReferences`.
#[derive(Clone, Debug)]
pub(crate) struct OwnerReference<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) blocks: bool,
}

impl OwnerReference<'_> {
    pub(crate) fn group(&self) -> &str {
        group_of(self.api_version)
    }
}

/// The group of an `apiVersion`.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

impl Object {
    /// An object of its JSON.
    #[must_use]
    pub fn new(json: Value) -> Self {
        Self(json)
    }

    /// What is at a JSON pointer; null where nothing is.
    pub(crate) fn at(&self, pointer: &str) -> &Value {
        self.0.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// The text there; nothing where there is none.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    pub(crate) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or_default()
    }

    pub(crate) fn is(&self, pointer: &str) -> bool {
        self.at(pointer).as_bool().unwrap_or_default()
    }

    pub(crate) fn has(&self, pointer: &str) -> bool {
        !self.at(pointer).is_null()
    }

    pub(crate) fn time(&self, pointer: &str) -> Option<Timestamp> {
        self.text(pointer).parse().ok()
    }

    /// What a list there has.
    pub(crate) fn list(&self, pointer: &str) -> impl Iterator<Item = &Value> {
        self.at(pointer).as_array().into_iter().flatten()
    }

    pub(crate) fn kind(&self) -> &str {
        self.text("/kind")
    }

    pub(crate) fn group(&self) -> &str {
        group_of(self.text("/apiVersion"))
    }

    pub(crate) fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    pub(crate) fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    pub(crate) fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    pub(crate) fn id(&self) -> Id {
        Id::new(self.group(), self.kind(), self.namespace(), self.name())
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.has("/metadata/deletionTimestamp")
    }

    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        labels(self.at("/metadata/labels"))
    }

    pub(crate) fn owners(&self) -> impl Iterator<Item = OwnerReference<'_>> {
        self.list("/metadata/ownerReferences").map(|one| OwnerReference {
            api_version: one["apiVersion"].as_str().unwrap_or_default(),
            kind: one["kind"].as_str().unwrap_or_default(),
            name: one["name"].as_str().unwrap_or_default(),
            uid: one["uid"].as_str().unwrap_or_default(),
            blocks: one["blockOwnerDeletion"] == true,
        })
    }

    pub(crate) fn is_owned_by(&self, owner: &Self) -> bool {
        !owner.uid().is_empty() && self.owners().any(|one| one.uid == owner.uid())
    }

    pub(crate) fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.list("/metadata/finalizers").filter_map(Value::as_str)
    }

    pub(crate) fn conditions(&self) -> impl Iterator<Item = Condition<'_>> {
        self.list("/status/conditions").map(|one| Condition {
            kind: one["type"].as_str().unwrap_or_default(),
            status: one["status"].as_str().unwrap_or_default(),
            reason: one["reason"].as_str().unwrap_or_default(),
            message: one["message"].as_str().unwrap_or_default(),
            observed_generation: one["observedGeneration"].as_i64(),
        })
    }

    pub(crate) fn condition(&self, kind: &str) -> Option<Condition<'_>> {
        self.conditions().find(|one| one.kind == kind)
    }

    /// The condition, where it has this status.
    pub(crate) fn condition_is(&self, kind: &str, status: &str) -> Option<Condition<'_>> {
        self.condition(kind).filter(|one| one.status == status)
    }

    /// Whether `Ready` is true.
    pub(crate) fn is_ready(&self) -> bool {
        self.condition_is("Ready", "True").is_some()
    }

    /// Who wrote fields, the last one first.
    pub(crate) fn managers(&self) -> impl Iterator<Item = &Value> {
        let mut all: Vec<&Value> = self.list("/metadata/managedFields").collect();
        all.sort_by(|one, other| other["time"].as_str().cmp(&one["time"].as_str()));
        all.into_iter()
    }
}

/// Labels of a map of texts.
pub(crate) fn labels(map: &Value) -> BTreeMap<String, String> {
    let map = map.as_object().into_iter().flatten();
    map.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
