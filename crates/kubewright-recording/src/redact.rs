//! What is not to be in a recording: its hash is there in its place, so that one sees whether it changed.

use std::str::FromStr;

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::hmac;
use serde_json::Value;

/// Where kubectl keeps the whole object that was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// How many bytes of a hash are kept.
const KEPT: usize = 12;

/// Path of a field: names with dots between, such as `spec.token`; lists are gone through, `*` is every name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(Vec<String>);

/// Error of a text that is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no path of a field, such as spec.token: names with dots between")]
pub struct BadPath(String);

impl FromStr for FieldPath {
    type Err = BadPath;

    fn from_str(text: &str) -> Result<Self, BadPath> {
        let names: Vec<String> = text.trim_start_matches('.').split('.').map(str::to_owned).collect();
        if names.iter().any(String::is_empty) { Err(BadPath(text.to_owned())) } else { Ok(Self(names)) }
    }
}

impl std::fmt::Display for FieldPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// Hashes what is secret, under a key that nobody keeps: equal values have equal hashes in a recording, and no value can be
/// found by trying.
#[derive(Debug)]
pub struct Redactor {
    key: hmac::Key,
    secrets: bool,
    paths: Vec<FieldPath>,
}

impl Redactor {
    /// One that hashes the data of Secrets, where `secrets` says so, and what is at these paths of any object. `key` is to be
    /// random.
    #[must_use]
    pub fn new(key: &[u8], secrets: bool, paths: Vec<FieldPath>) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key), secrets, paths }
    }

    /// What is hashed, for a [`Header`](crate::Header).
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let secrets = self.secrets.then(|| "secrets".to_owned());
        secrets.into_iter().chain(self.paths.iter().map(ToString::to_string)).collect()
    }

    /// Whether it leaves objects of a collection as they are.
    #[must_use]
    pub fn is_idle(&self, collection: &str) -> bool {
        self.paths.is_empty() && !(self.secrets && is_secrets(collection))
    }

    /// Hashes what is secret in an object of a collection, such as `/secrets`.
    pub fn redact(&self, collection: &str, object: &mut Value) {
        let mut has_hashed = false;
        if self.secrets && is_secrets(collection) {
            has_hashed = true;
            for value in members(object, "data") {
                *value = Value::String(STANDARD.encode(self.hash(value)));
            }
            for value in members(object, "stringData") {
                *value = Value::String(self.hash(value));
            }
        }
        for path in &self.paths {
            has_hashed |= self.at(&path.0, object);
        }
        let applied = object.pointer_mut("/metadata/annotations").and_then(|all| all.get_mut(LAST_APPLIED));
        // It may have the same values.
        if let Some(applied) = applied.filter(|_| has_hashed || !self.paths.is_empty()) {
            *applied = Value::String(self.hash(applied));
        }
    }

    /// Hashes what is at a path; gives whether there was something.
    fn at(&self, path: &[String], value: &mut Value) -> bool {
        match (path, value) {
            (_, Value::Array(all)) => all.iter_mut().fold(false, |any, one| self.at(path, one) | any),
            ([], value) => {
                self.leaves(value);
                true
            }
            ([name, rest @ ..], Value::Object(fields)) if name == "*" => {
                fields.values_mut().fold(false, |any, one| self.at(rest, one) | any)
            }
            ([name, rest @ ..], Value::Object(fields)) => {
                fields.get_mut(name).is_some_and(|value| self.at(rest, value))
            }
            _ => false,
        }
    }

    /// Hashes each text; numbers become 0, and flags false, so that an object stays one of its kind.
    fn leaves(&self, value: &mut Value) {
        match value {
            Value::Null => {}
            Value::Bool(flag) => *flag = false,
            Value::Number(number) => *number = 0.into(),
            Value::String(_) => *value = Value::String(self.hash(value)),
            Value::Array(all) => all.iter_mut().for_each(|one| self.leaves(one)),
            Value::Object(fields) => fields.values_mut().for_each(|one| self.leaves(one)),
        }
    }

    fn hash(&self, value: &Value) -> String {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let tag = hmac::sign(&self.key, text.as_bytes());
        let digits: String = tag.as_ref()[..KEPT].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("redacted-{digits}")
    }
}

fn is_secrets(collection: &str) -> bool {
    collection == "/secrets"
}

fn members<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    let fields = object.get_mut(field).and_then(Value::as_object_mut);
    fields.into_iter().flat_map(|fields| fields.values_mut())
}
