//! What a scalar of YAML 1.1 means (`go.yaml.in/yaml/v2`, `resolve.go`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use granit_parser::{ScalarStyle, Tag};
use serde_json::{Number, Value};

/// A node as YAML has it: JSON, or what JSON lacks.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    /// What JSON has too.
    Value(Value),
    /// A number with a fraction or an exponent, as text a key needs; infinities and no-number too.
    Float(f64),
    /// The key `<<`.
    Merge,
}

impl Scalar {
    /// What a text means in a style, under a tag.
    pub(super) fn resolve(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Self, String> {
        let tag = tag.map(|tag| match tag.parts() {
            ("tag:yaml.org,2002:", suffix) => suffix,
            _ => "other",
        });
        let quoted = style != ScalarStyle::Plain;
        match tag {
            None if quoted => Ok(Self::text(text)),
            None => Ok(Self::plain(text)),
            Some("binary") => {
                let bytes =
                    STANDARD.decode(text).map_err(|_| "yaml: !!binary value contains invalid base64 data");
                Ok(Self::text(&String::from_utf8_lossy(&bytes?)))
            }
            Some(tag @ ("bool" | "int" | "float" | "null")) => {
                let plain = Self::plain(text);
                match (tag, plain) {
                    ("float", Self::Value(Value::Number(whole))) => {
                        Ok(Self::Float(whole.as_f64().unwrap_or_default()))
                    }
                    (tag, plain) if plain.tag() == tag => Ok(plain),
                    (tag, plain) => {
                        Err(format!("yaml: cannot decode !!{} `{text}` as a !!{tag}", plain.tag()))
                    }
                }
            }
            Some(_) => Ok(Self::text(text)),
        }
    }

    fn text(text: &str) -> Self {
        Self::Value(Value::String(text.to_owned()))
    }

    fn plain(text: &str) -> Self {
        let value = match text {
            "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
                Value::Bool(true)
            }
            "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
                Value::Bool(false)
            }
            "" | "~" | "null" | "Null" | "NULL" => Value::Null,
            ".nan" | ".NaN" | ".NAN" => return Self::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Self::Float(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => return Self::Float(f64::NEG_INFINITY),
            "<<" => return Self::Merge,
            other => return number(other).unwrap_or_else(|| Self::text(other)),
        };
        Self::Value(value)
    }

    fn tag(&self) -> &'static str {
        match self {
            Self::Value(Value::Null) => "null",
            Self::Value(Value::Bool(_)) => "bool",
            Self::Value(Value::Number(_)) => "int",
            Self::Float(_) => "float",
            Self::Value(_) => "str",
            Self::Merge => "merge",
        }
    }

    /// As JSON, as Go's encoder writes it: a float without a fraction is a whole number.
    pub(super) fn into_json(self) -> Result<Value, String> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Merge => Ok("<<".into()),
            Self::Float(float) if float.is_finite() => Ok(json_number(float)),
            Self::Float(float) => Err(format!("json: unsupported value: {}", go_float(float))),
        }
    }

    /// As the name of a member.
    pub(super) fn into_key(self) -> Result<String, String> {
        match self {
            Self::Value(Value::String(text)) => Ok(text),
            Self::Value(Value::Bool(yes)) => Ok(yes.to_string()),
            Self::Value(Value::Number(number)) => Ok(number.to_string()),
            Self::Float(float) if float.is_nan() => Ok(".nan".to_owned()),
            Self::Float(f64::INFINITY) => Ok(".inf".to_owned()),
            Self::Float(f64::NEG_INFINITY) => Ok("-.inf".to_owned()),
            Self::Float(float) => Ok((float as f32).to_string()),
            Self::Merge => Ok("<<".to_owned()),
            Self::Value(Value::Null) => {
                Err("unsupported map key of type: %!s(<nil>), key: <nil>, value: <nil>".to_owned())
            }
            Self::Value(other) => Err(format!("yaml: invalid map key: {}", go_value(&other))),
        }
    }

    /// As a message shows a key: as Go source.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Value(value) => go_value(value),
            Self::Float(float) => go_float(*float),
            Self::Merge => "\"<<\"".to_owned(),
        }
    }
}

/// An integer in one of Go's notations, or a float; `None` for what is neither.
fn number(text: &str) -> Option<Scalar> {
    let first = text.bytes().next()?;
    if first == b'.' {
        return float(text);
    }
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-')) {
        return None;
    }
    let plain = text.replace('_', "");
    integer(&plain).map(|number| Scalar::Value(Value::Number(number))).or_else(|| float(&plain))
}

fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_alphanumeric()) {
        return None;
    }
    let number = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let number = if negative { -number } else { number };
    i64::try_from(number).map(Number::from).or_else(|_| u64::try_from(number).map(Number::from)).ok()
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`
fn float(text: &str) -> Option<Scalar> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let allowed = unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let float: f64 = text.parse().ok().filter(|_| allowed && !unsigned.is_empty())?;
    float.is_finite().then_some(Scalar::Float(float))
}

fn json_number(float: f64) -> Value {
    // What 64 bits hold is exact here: below 2^63 a float without a fraction is a whole number.
    if float.fract() == 0.0 && float.abs() < 9.0e18 {
        return (float as i64).into();
    }
    Number::from_f64(float).map_or(Value::Null, Value::Number)
}

fn go_float(float: f64) -> String {
    match float {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        float => float.to_string(),
    }
}

fn go_value(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(go_value).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let members: Vec<String> =
                map.iter().map(|(key, value)| format!("{key:?}:{}", go_value(value))).collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", members.join(", "))
        }
        Value::String(text) => format!("{text:?}"),
        Value::Null => "interface {}(nil)".to_owned(),
        other => other.to_string(),
    }
}
