//! Parts of built-in kinds inside of custom ones, such as pod templates, that a schema lets through as they are.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Decoding error: why a value is not what it is meant to be.
#[derive(Debug, thiserror::Error)]
pub enum Undecodable {
    /// A field has a value of another type, or one that must be there is not.
    #[error("{0}")]
    Mistyped(#[from] serde_json::Error),
    /// Nobody would look at these fields: they are misspelt or misplaced.
    #[error("unknown field {}", .0.iter().map(|field| format!("{field:?}")).collect::<Vec<_>>().join(", "))]
    Unknown(Vec<String>),
}

/// Reads `value` as a `T`, as strictly as an API server with `fieldValidation=Strict`: a field that `T` does not have is an
/// error, not silence. At most five such fields are told.
///
/// ```
/// use k8s_openapi::api::core::v1::PodSpec;
/// use kubewright_runtime::strict;
/// use serde_json::json;
///
/// let misspelt = json!({"containers": [{"name": "a", "imege": "b"}]});
/// let error = strict::decode::<PodSpec>(&misspelt).expect_err("a PodSpec has no such field");
/// assert_eq!(error.to_string(), "unknown field \"containers[0].imege\"");
/// ```
///
/// # Errors
/// [`Undecodable`].
pub fn decode<T: Serialize + DeserializeOwned>(value: &Value) -> Result<T, Undecodable> {
    let decoded = kubewright_objects::from_value::<T>(value)?;
    let mut unknown = Vec::new();
    lost("", value, &kubewright_objects::to_value(&decoded)?, &mut unknown);
    if unknown.is_empty() { Ok(decoded) } else { Err(Undecodable::Unknown(unknown)) }
}

/// The fields of `given` that `kept` has not. Nothing is as good as null.
fn lost(path: &str, given: &Value, kept: &Value, fields: &mut Vec<String>) {
    match (given, kept) {
        (Value::Object(given), kept) => {
            for (name, given) in given {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match kept.get(name) {
                    Some(kept) => lost(&path, given, kept, fields),
                    None if given.is_null() || fields.len() == 5 => {}
                    None => fields.push(path),
                }
            }
        }
        (Value::Array(given), Value::Array(kept)) => {
            for (index, (given, kept)) in given.iter().zip(kept).enumerate() {
                lost(&format!("{path}[{index}]"), given, kept, fields);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{batch::v1::JobSpec, core::v1::PodSpec};
    use serde_json::json;

    use super::*;

    fn complaint<T: Serialize + DeserializeOwned>(value: &Value) -> String {
        decode::<T>(value).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn what_a_kind_has_is_read() {
        assert_eq!(
            complaint::<PodSpec>(&json!({"containers": [{"name": "a", "command": null, "args": []}]})),
            ""
        );
        assert_eq!(
            complaint::<PodSpec>(
                &json!({"containers": [], "nodeSelector": {"a.b/c": "d"}, "volumes": [{"name": "v", "emptyDir": {}}]})
            ),
            ""
        );
        assert_eq!(complaint::<JobSpec>(&json!({"template": {"metadata": {"creationTimestamp": null}}})), "");
    }

    #[test]
    fn what_it_has_not_is_told_by_its_path() {
        let unknown = json!({"containers": [{"name": "a"}, {"name": "b", "imege": "c"}], "nodeSelectr": {}});
        assert_eq!(complaint::<PodSpec>(&unknown), "unknown field \"containers[1].imege\", \"nodeSelectr\"");
        let many: Value = (0..20).map(|n| (format!("field{n:02}"), json!(n))).collect();
        assert_eq!(
            complaint::<JobSpec>(&json!({"template": {"spec": {"containers": []}, "metadata": many}}))
                .matches("field")
                .count(),
            6
        );
        assert!(
            complaint::<PodSpec>(&json!({"containers": "none"})).contains("invalid type: string \"none\"")
        );
    }
}
