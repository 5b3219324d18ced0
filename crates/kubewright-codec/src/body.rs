//! Bodies of objects: JSON or YAML, decoded within the limits of depth.

use bytes::Bytes;
use kubewright_meta::ApiError;
use serde_json::Value;

use super::json::{Earlier, type_name};
use super::negotiate::TextEncoding;
use super::{json, yaml};

/// A decoded body.
#[derive(Debug)]
pub struct Decoded {
    /// The value: an object, or null.
    pub value: Value,
    /// What it was decoded from.
    pub origin: Origin,
}

/// What a value was decoded from; strict validation asks for members that stand in their object twice.
#[derive(Debug)]
pub enum Origin {
    /// A form that cannot repeat a member: protobuf, or no text at all.
    Unrepeated,
    /// An object that a patch has changed.
    Patch {
        /// What strict decoding has against the patch itself.
        complaints: Vec<String>,
    },
    /// JSON.
    Json {
        /// The text.
        text: Bytes,
        /// The paths of repeated members, in its order.
        repeated: Vec<String>,
        /// What these were before.
        earlier: Vec<Earlier>,
    },
    /// YAML.
    Yaml {
        /// The text.
        text: Bytes,
        /// Such as `line 7: key "k" already set in map`.
        repeated: Vec<String>,
    },
}

impl Decoded {
    /// A value that comes from no text.
    #[must_use]
    pub fn of(value: Value) -> Self {
        Self { value, origin: Origin::Unrepeated }
    }
}

impl Origin {
    /// What members were before that stand in their object twice, in the order of the text.
    pub fn take_earlier(&mut self) -> Vec<Earlier> {
        match self {
            Self::Json { earlier, .. } => std::mem::take(earlier),
            Self::Unrepeated | Self::Patch { .. } | Self::Yaml { .. } => Vec::new(),
        }
    }

    /// The text that was decoded; empty where there was none.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        match self {
            Self::Unrepeated | Self::Patch { .. } => &[],
            Self::Json { text, .. } | Self::Yaml { text, .. } => text,
        }
    }

    /// What strict validation complains of, one text each: repeated members, and `unknown` ones (paths). For a built-in
    /// kind they come in the order of the text, for a `custom` one unknown members come last
    /// (`sigs.k8s.io/json`; `apiextensions-apiserver/pkg/apiserver`, `schemaCoercingDecoder`).
    #[must_use]
    pub fn complaints(&self, unknown: &[String], custom: bool) -> Vec<String> {
        let of_unknown = || unknown.iter().map(|path| format!("unknown field {path:?}"));
        match self {
            Self::Unrepeated => of_unknown().collect(),
            Self::Patch { complaints } => complaints.iter().cloned().chain(of_unknown()).collect(),
            Self::Yaml { repeated, .. } => repeated.iter().cloned().chain(of_unknown()).collect(),
            Self::Json { text, repeated, .. } if !custom && unknown.len() + repeated.len() > 1 => {
                json::complaints(text, unknown)
            }
            Self::Json { repeated, .. } => {
                repeated.iter().map(|path| format!("duplicate field {path:?}")).chain(of_unknown()).collect()
            }
        }
    }

    /// [`Origin::complaints`] in one message; `None` when there are none.
    #[must_use]
    pub fn strict_error(&self, unknown: &[String], custom: bool) -> Option<String> {
        let complaints = self.complaints(unknown, custom);
        let keys = match self {
            Self::Yaml { repeated, .. } => repeated.len(),
            Self::Unrepeated | Self::Patch { .. } | Self::Json { .. } => 0,
        };
        let (keys, others) = complaints.split_at(keys);
        let keys = (!keys.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", keys.join("\n  ")));
        let all: Vec<String> = keys.into_iter().chain(others.iter().cloned()).collect();
        (!all.is_empty()).then(|| format!("strict decoding error: {}", all.join(", ")))
    }
}

/// Decodes JSON or YAML of an object, or of nothing (null). Nesting is limited, aliases of YAML too.
///
/// # Errors
/// What is wrong, as a part of the message about an unrecognized object.
pub fn decode(bytes: &Bytes, encoding: TextEncoding) -> Result<Decoded, String> {
    let decoded = match encoding {
        TextEncoding::Json => {
            let json::Parsed { value, repeated, earlier } =
                json::decode(bytes).map_err(|error| no_type(&error))?;
            Decoded { value, origin: Origin::Json { text: bytes.clone(), repeated, earlier } }
        }
        TextEncoding::Yaml => {
            let parsed = yaml::decode(bytes)?;
            let origin = Origin::Yaml { text: bytes.clone(), repeated: parsed.repeated };
            Decoded { value: parsed.value, origin }
        }
    };
    check_type_fields(&decoded.value)?;
    Ok(decoded)
}

/// Whether `apiVersion` and `kind` can be read (`k8s.io/apimachinery/pkg/runtime/serializer/json/meta.go`).
fn check_type_fields(value: &Value) -> Result<(), String> {
    let Value::Object(object) = value else {
        return match value {
            Value::Null => Ok(()),
            other => Err(no_type(&format!(
                r#"json: cannot unmarshal {} into Go value of type struct {{ APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }}"#,
                type_name(other)
            ))),
        };
    };
    for field in ["apiVersion", "kind"] {
        match object.get(field) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                return Err(no_type(&format!(
                    "json: cannot unmarshal {} into Go struct field .{field} of type string",
                    type_name(other)
                )));
            }
        }
    }
    Ok(())
}

fn no_type(reason: &str) -> String {
    format!("couldn't get version/kind; json parse error: {reason}")
}

/// The answer to a body that is no object of any kind: a 400
/// (`k8s.io/apiserver/pkg/endpoints/handlers/rest.go`, `transformDecodeError`).
#[must_use]
pub fn unrecognized(kind: &str, reason: &str, body: &[u8]) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {reason} ({})",
        excerpt(body)
    ))
}

/// The beginning of a body that makes no sense, for a message (`k8s.io/apiserver/pkg/endpoints/handlers/rest.go`,
/// `summarizeData`): as it is where it looks like JSON, else in hexadecimal digits.
#[must_use]
pub fn excerpt(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let (shown, more) = body.split_at_checked(SHOWN).unwrap_or((body, &[]));
    let text = match shown {
        [] => return "<empty>".to_owned(),
        [b'{', ..] => String::from_utf8_lossy(shown).into_owned(),
        _ => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if more.is_empty() { text } else { format!("{text} ...") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_shows_json_as_text_and_all_else_in_digits() {
        assert_eq!(excerpt(b""), "<empty>");
        assert_eq!(excerpt(b"{not json"), "{not json");
        assert_eq!(excerpt(b"[]"), "5b5d");
        assert_eq!(excerpt(&[b'{'; 31]), format!("{} ...", "{".repeat(30)));
    }
}
