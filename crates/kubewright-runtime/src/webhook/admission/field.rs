//! What is wrong with a field, in the words of every Kubernetes API.

use std::fmt;

use serde_json::Value;

/// A mistake in one field of an object (`k8s.io/apimachinery/pkg/util/validation/field`, `Error`).
///
/// ```
/// use kubewright_runtime::webhook::FieldError;
/// let error = FieldError::invalid("spec.size", 9, "must be odd and less than 8");
/// assert_eq!(error.to_string(), "spec.size: Invalid value: 9: must be odd and less than 8");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    field: String,
    problem: Problem,
    value: Option<Value>,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    Required,
    Invalid,
    NotSupported,
    Duplicate,
    Forbidden,
    NotFound,
    TooLong,
    TooMany,
}

impl FieldError {
    fn new(field: impl Into<String>, problem: Problem, value: Option<Value>, detail: String) -> Self {
        Self { field: field.into(), problem, value, detail }
    }

    /// A field that has to be set; `detail` may be empty.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, Problem::Required, None, detail.into())
    }

    /// A value that is wrong.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(field, Problem::Invalid, Some(value.into()), detail.into())
    }

    /// A value that is none of those that there are.
    pub fn not_supported<'a>(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let supported: Vec<String> = supported.into_iter().map(|value| format!("{value:?}")).collect();
        let detail = match supported.is_empty() {
            true => String::new(),
            false => format!("supported values: {}", supported.join(", ")),
        };
        Self::new(field, Problem::NotSupported, Some(value.into()), detail)
    }

    /// A value that is there twice, where it may be once.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(field, Problem::Duplicate, Some(value.into()), String::new())
    }

    /// A field that may not be set (so), or not be changed.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, Problem::Forbidden, None, detail.into())
    }

    /// A reference to something that is not there.
    pub fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(field, Problem::NotFound, Some(value.into()), String::new())
    }

    /// A text of more than `most` bytes.
    pub fn too_long(field: impl Into<String>, most: usize) -> Self {
        let unit = if most == 1 { "byte" } else { "bytes" };
        Self::new(field, Problem::TooLong, None, format!("may not be more than {most} {unit}"))
    }

    /// A list of more than `most` elements.
    pub fn too_many(field: impl Into<String>, found: usize, most: usize) -> Self {
        let unit = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {unit}");
        Self::new(field, Problem::TooMany, Some(found.into()), detail)
    }

    /// Where: `spec.containers[0].image`.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The reason of the cause in a Status (`FieldValueInvalid`).
    pub(crate) fn reason(&self) -> &'static str {
        match self.problem {
            Problem::Required => "FieldValueRequired",
            Problem::Invalid => "FieldValueInvalid",
            Problem::NotSupported => "FieldValueNotSupported",
            Problem::Duplicate => "FieldValueDuplicate",
            Problem::Forbidden => "FieldValueForbidden",
            Problem::NotFound => "FieldValueNotFound",
            Problem::TooLong => "FieldValueTooLong",
            Problem::TooMany => "FieldValueTooMany",
        }
    }

    /// What is wrong, without the field (`Error.ErrorBody`).
    pub(crate) fn body(&self) -> String {
        let kind = match self.problem {
            Problem::Required => "Required value",
            Problem::Invalid => "Invalid value",
            Problem::NotSupported => "Unsupported value",
            Problem::Duplicate => "Duplicate value",
            Problem::Forbidden => "Forbidden",
            Problem::NotFound => "Not found",
            Problem::TooLong => "Too long",
            Problem::TooMany => "Too many",
        };
        let mut body = kind.to_owned();
        if let Some(value) = &self.value {
            body.push_str(": ");
            body.push_str(&value.to_string());
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mistakes_read_as_kubernetes_writes_them() {
        let text: Vec<String> = [
            FieldError::required("spec.name", ""),
            FieldError::required("spec.name", "a server needs one"),
            FieldError::invalid("spec.name", "a b", "no spaces"),
            FieldError::invalid("spec", json!({"b": [1, null]}), ""),
            FieldError::not_supported("spec.mode", "c", ["a", "b"]),
            FieldError::duplicate("spec.ports[1]", 80),
            FieldError::forbidden("spec.size", "field is immutable"),
            FieldError::not_found("spec.class", "fast"),
            FieldError::too_long("spec.text", 1),
            FieldError::too_many("spec.list", 3, 2),
        ]
        .iter()
        .map(ToString::to_string)
        .collect();
        assert_eq!(
            text,
            [
                "spec.name: Required value",
                "spec.name: Required value: a server needs one",
                r#"spec.name: Invalid value: "a b": no spaces"#,
                r#"spec: Invalid value: {"b":[1,null]}"#,
                r#"spec.mode: Unsupported value: "c": supported values: "a", "b""#,
                "spec.ports[1]: Duplicate value: 80",
                "spec.size: Forbidden: field is immutable",
                r#"spec.class: Not found: "fast""#,
                "spec.text: Too long: may not be more than 1 byte",
                "spec.list: Too many: 3: must have at most 2 items",
            ]
        );
    }
}
