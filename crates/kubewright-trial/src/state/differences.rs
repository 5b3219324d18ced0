//! How two states differ, but for what differs in any two runs.

use std::collections::BTreeSet;

use kubewright_meta::quantity::Quantity;
use serde::Serialize;
use serde_json::Value;

use super::{CLAIMS, OF_CLUSTER, STORAGE, State, are_uids, are_versions, before_hash};
use crate::story::ObjectId;

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
