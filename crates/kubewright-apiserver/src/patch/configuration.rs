//! Configurations for server-side apply: YAML (and so JSON), whatever the content type says of it
//! (`k8s.io/apiserver/pkg/endpoints/handlers/patch.go`, `applyPatcher`).

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::type_name;
use crate::ApiError;

/// A decoded configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// An object.
    pub value: Value,
    /// What strict decoding has against it: keys that stand twice in their object (the last one counts).
    pub complaint: Option<String>,
}

impl Configuration {
    /// Decodes YAML.
    ///
    /// # Errors
    /// 400 for what is none, or no object.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let (value, complaint) = read(body).map_err(|why| {
            ApiError::bad_request(format!("error decoding YAML: error converting YAML to JSON: yaml: {why}"))
        })?;
        match value {
            Value::Object(_) => Ok(Self { value, complaint }),
            Value::Null => Ok(Self { value: Value::Object(Map::new()), complaint }),
            other => Err(ApiError::bad_request(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                type_name(&other)
            ))),
        }
    }
}

fn read(body: &[u8]) -> Result<(Value, Option<String>), String> {
    // What looks like JSON mostly is, and read much faster as such.
    if let Ok(decoded) = crate::http::json::decode(body)
        && decoded.repeated.is_empty()
    {
        return Ok((decoded.value, None));
    }
    let text = std::str::from_utf8(body).map_err(|_| "invalid UTF-8".to_owned())?;
    let error = match serde_saphyr::from_str(text) {
        Ok(value) => return Ok((value, None)),
        Err(error) => error,
    };
    let last_wins = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    let value = serde_saphyr::from_str_with_options(text, last_wins).map_err(|_| in_go(&error))?;
    Ok((value, Some(doubled(text))))
}

/// An error of the parser in go-yaml's words: both have them from libyaml.
fn in_go(error: &serde_saphyr::Error) -> String {
    let message = error.without_snippet().to_string();
    let first = message.lines().next().unwrap_or_default();
    let Some(at) = first.find("did not find") else { return first.to_owned() };
    let words = first[at..].split(" at line").next().unwrap_or_default();
    match error.location().map_or(0, |location| location.line().saturating_sub(1)) {
        0 => words.to_owned(),
        line => format!("line {line}: {words}"),
    }
}

/// What go-yaml's strict decoding says of keys that stand twice.
fn doubled(text: &str) -> String {
    let mut found = Vec::new();
    let last_wins = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    // It was read before: an error would only mean that not all of them are found.
    let _ = serde_saphyr::with_deserializer_from_str_with_options(text, last_wins, |deserializer| {
        Doubled(&mut found).deserialize(deserializer)
    });
    let lines: Vec<String> =
        found.iter().map(|(line, key)| format!("  line {line}: key {key:?} already set in map")).collect();
    format!("error converting YAML to JSON: yaml: unmarshal errors:\n{}", lines.join("\n"))
}

/// Collects the keys that stand twice in their map, with their lines.
struct Doubled<'a>(&'a mut Vec<(u64, String)>);

impl<'de> DeserializeSeed<'de> for Doubled<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Doubled<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<Spanned<Key>>()? {
            let line = key.defined.line();
            if !seen.insert(key.value.0.clone()) {
                self.0.push((line, key.value.0));
            }
            map.next_value_seed(Doubled(&mut *self.0))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Doubled(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// A key as text.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = Value::deserialize(deserializer)?;
        Ok(Self(key.as_str().map_or_else(|| key.to_string(), str::to_owned)))
    }
}
