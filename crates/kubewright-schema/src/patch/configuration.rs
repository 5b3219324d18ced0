//! Configurations for server-side apply: YAML (and so JSON), whatever the content type says of it
//! (`k8s.io/apiserver/pkg/endpoints/handlers/patch.go`, `applyPatcher`).

use kubewright_codec::json;
use kubewright_codec::yaml::{self, Parsed};
use kubewright_meta::ApiError;
use serde_json::{Map, Value};

use super::type_name;

/// A decoded configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// An object.
    pub value: Value,
    /// Keys that stand twice in their object (the last one counts), such as `line 7: key "k" already set in map`.
    pub repeated: Vec<String>,
}

impl Configuration {
    /// Decodes YAML.
    ///
    /// # Errors
    /// 400 for what is none, or no object.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let Parsed { value, repeated } = read(body).map_err(|why| {
            ApiError::bad_request(format!("error decoding YAML: error converting YAML to JSON: {why}"))
        })?;
        match value {
            Value::Object(_) => Ok(Self { value: with_whole_numbers(value), repeated }),
            Value::Null => Ok(Self { value: Value::Object(Map::new()), repeated }),
            other => Err(ApiError::bad_request(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                type_name(&other)
            ))),
        }
    }
}

fn read(body: &[u8]) -> Result<Parsed, String> {
    // What looks like JSON mostly is, and read much faster as such.
    match json::decode(body) {
        Ok(decoded) if decoded.repeated.is_empty() => {
            Ok(Parsed { value: decoded.value, repeated: Vec::new() })
        }
        _ => yaml::decode(body),
    }
}

/// On its way from YAML to JSON, `1.0` becomes `1` (`sigs.k8s.io/yaml`, `YAMLToJSON`).
fn with_whole_numbers(mut value: Value) -> Value {
    make_whole(&mut value);
    value
}

#[allow(clippy::cast_possible_truncation, reason = "the number is whole and within the range")]
fn make_whole(value: &mut Value) {
    /// 2 to the 63rd.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < BEYOND) {
                *value = (whole as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(members) => members.values_mut().for_each(make_whole),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_lose_their_point() {
        let config = Configuration::parse(b"{\"a\": [1.0, 1.5, 1e30], \"b\": {\"c\": -2.0}}");
        assert_eq!(config.map(|it| it.value), Ok(json!({"a": [1, 1.5, 1e30], "b": {"c": -2}})));
    }

    #[test]
    fn keys_that_stand_twice_are_told_with_their_lines_and_the_last_counts() {
        let config = Configuration::parse(b"data:\n  a: \"1\"\n  a: \"2\"\n").expect("a configuration");
        assert_eq!(config.value, json!({"data": {"a": "2"}}));
        assert_eq!(config.repeated, ["line 3: key \"a\" already set in map"]);
    }
}
