//! Request bodies: collected within the limit, decoded within the limits of depth.

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use super::negotiate::Encoding;
use crate::error::ApiError;
use crate::patch::type_name;

/// The most bytes that a body may have: 3 MiB, as in kube-apiserver.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// Reads a whole body.
///
/// # Errors
/// 413 over [`BODY_LIMIT`]; 400 when the client goes away in the middle.
pub async fn collect<B>(body: B) -> Result<Bytes, ApiError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large(BODY_LIMIT)),
        Err(error) => Err(ApiError::bad_request(format!("unable to read the request body: {error}"))),
    }
}

/// A decoded body.
#[derive(Debug)]
pub struct Decoded {
    /// The value, whatever its JSON type.
    pub value: Value,
    /// The paths of the members that stand in their object twice (the last one counts).
    pub duplicates: Vec<String>,
}

/// Decodes JSON or YAML of an object, or of nothing (null). Nesting is limited (128 levels), aliases of YAML too.
///
/// # Errors
/// What is wrong, as one sentence for a message.
pub fn decode(bytes: &[u8], encoding: Encoding) -> Result<Decoded, String> {
    let decoded = match encoding {
        Encoding::Json => super::json::decode(bytes)?,
        Encoding::Yaml => {
            let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid UTF-8".to_owned())?;
            let value = serde_saphyr::from_str(text)
                .map_err(|error| format!("error converting YAML to JSON: {error}"))?;
            Decoded { value, duplicates: Vec::new() }
        }
    };
    match &decoded.value {
        Value::Null | Value::Object(_) => Ok(decoded),
        other => Err(format!(
            r#"json: cannot unmarshal {} into Go value of type struct {{ APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }}"#,
            type_name(other)
        )),
    }
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
