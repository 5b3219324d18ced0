//! JSON decoding that notices members which stand in their object twice, as strict field validation has to.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::body::Decoded;

/// The most duplicate members that are told; a body with more is told these.
const DUPLICATES_TOLD: usize = 100;

/// Decodes one JSON value.
///
/// # Errors
/// What is wrong, in the words of Go's decoder where serde can tell as much.
pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded, String> {
    let mut duplicates = Vec::new();
    let mut path = String::new();
    let mut decoder = serde_json::Deserializer::from_slice(bytes);
    let value = Seed { path: &mut path, duplicates: &mut duplicates }
        .deserialize(&mut decoder)
        .and_then(|value| decoder.end().map(|()| value))
        .map_err(|error| describe(&error, bytes))?;
    Ok(Decoded { value, duplicates })
}

/// A decoding error as Go words it: an unexpected end, or an unexpected character and where it was looked for.
fn describe(error: &serde_json::Error, bytes: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    let place = match reason {
        "key must be a string" => "looking for beginning of object key string",
        "expected value" | "expected ident" => "looking for beginning of value",
        "trailing characters" => "after top-level value",
        "expected `,` or `}`" => "after object key:value pair",
        "expected `,` or `]`" => "after array element",
        "expected `:`" => "after object key",
        _ => return reason.to_owned(),
    };
    let line = bytes.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let column = error.column().saturating_sub(1);
    let rest = line.get(column..).unwrap_or_default();
    // A byte that is no UTF-8 is told as the character of its number.
    let text = rest.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    match (text.chars().next(), rest.first()) {
        (Some(found), _) => format!("invalid character '{found}' {place}"),
        (None, Some(byte)) => format!("invalid character '\\u{byte:04x}' {place}"),
        (None, None) => reason.to_owned(),
    }
}

struct Seed<'a> {
    path: &'a mut String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let length = self.path.len();
        loop {
            use fmt::Write;
            let _ = write!(self.path, "[{}]", list.len());
            let item = items.next_element_seed(Seed { path: self.path, duplicates: self.duplicates })?;
            self.path.truncate(length);
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        let length = self.path.len();
        while let Some(key) = members.next_key::<String>()? {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            if map.contains_key(&key) && self.duplicates.len() < DUPLICATES_TOLD {
                self.duplicates.push(self.path.clone());
            }
            let value = members.next_value_seed(Seed { path: self.path, duplicates: self.duplicates })?;
            self.path.truncate(length);
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_stand_twice_are_noticed() {
        let decoded = decode(br#"{"a": {"b": 1, "b": 2}, "l": [{"x": 1, "x": 1}]}"#).unwrap();
        assert_eq!(decoded.duplicates, ["a.b", "l[0].x"]);
        assert_eq!(decoded.value["a"]["b"], 2);
    }

    #[test]
    fn broken_json_is_told_as_go_tells_it() {
        assert_eq!(
            decode(b"{not json").unwrap_err(),
            "invalid character 'n' looking for beginning of object key string"
        );
        assert_eq!(decode(b"").unwrap_err(), "unexpected end of JSON input");
        assert_eq!(decode(b"{} extra").unwrap_err(), "invalid character 'e' after top-level value");
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = [b"[".repeat(10_000), b"]".repeat(10_000)].concat();
        assert!(decode(&deep).unwrap_err().contains("recursion limit"));
    }
}
