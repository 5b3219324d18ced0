//! Resource versions as clients write them (`k8s.io/apiserver/pkg/storage/api_object_versioner.go`).

use kubewright_meta::{ApiError, object};
use kubewright_store::Revision;
use serde_json::{Value, json};

/// A resource version, or what Kubernetes says of a text that is none.
pub(crate) fn parse_version(text: &str) -> Result<Revision, String> {
    let invalid = |why: String| format!("resourceVersion: Invalid value: {}: {why}", json!(text));
    parse_uint(text).map(Revision).map_err(invalid)
}

/// The resource version that an object names; 0 where it names none.
///
/// # Errors
/// 500 without a reason, as in Kubernetes, for one that is no number.
pub(crate) fn version_of(object: &Value) -> Result<u64, ApiError> {
    match object::resource_version(object) {
        "" => Ok(0),
        given => parse_uint(given).map_err(ApiError::unexplained),
    }
}

/// A number, or what Go's `strconv.ParseUint` says of a text that is none. It takes no sign.
fn parse_uint(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let why = if digits { "value out of range" } else { "invalid syntax" };
    let wrong = || format!("strconv.ParseUint: parsing {text:?}: {why}");
    text.parse().ok().filter(|_| digits).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_digits_that_fit() {
        assert_eq!(parse_version("18446744073709551615"), Ok(Revision(u64::MAX)));
        for (text, why) in [
            ("18446744073709551616", "value out of range"),
            ("+5", "invalid syntax"),
            ("-1", "invalid syntax"),
            ("1.5", "invalid syntax"),
            ("x", "invalid syntax"),
        ] {
            let why = format!("strconv.ParseUint: parsing {text:?}: {why}");
            assert_eq!(parse_version(text), Err(format!("resourceVersion: Invalid value: {text:?}: {why}")));
            let object = json!({"metadata": {"resourceVersion": text}});
            assert_eq!(version_of(&object).expect_err("no number").message, why);
        }
        assert_eq!(version_of(&json!({"metadata": {}})).expect("none"), 0);
    }
}
