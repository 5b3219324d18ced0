//! Errors of a field: the parts of a `422 Invalid` answer (`k8s.io/apimachinery/pkg/util/validation/field`).

use serde_json::Value;

use crate::go;

/// What is wrong with one field of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The path of the field, such as `spec.ports[0].name`.
    pub field: String,
    /// What kind of mistake it is.
    pub problem: Problem,
    /// The rest of the sentence, such as `must be greater than or equal to 0`.
    pub detail: String,
}

/// The kinds of mistakes; a value is shown as Kubernetes shows it.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// `Required value`.
    Required,
    /// `Invalid value: <value>`.
    Invalid(Value),
    /// `Invalid value: <type>`: the value is of another type than the schema's.
    TypeInvalid(Value),
    /// `Unsupported value: <value>`.
    NotSupported(Value),
    /// `Duplicate value: <value>`.
    Duplicate(Value),
    /// `Not found: <value>`.
    NotFound(Value),
    /// `Forbidden`.
    Forbidden,
    /// `Too long`: may not be more than so many bytes (the detail says it).
    TooLong,
    /// `Too many: <count>`.
    TooMany(usize),
    /// `Internal error`.
    Internal,
    /// `Invalid value`, of a value that is not told.
    Omitted,
    /// A mistake whose value Kubernetes prints as a Go struct: its own order of fields, sometimes Go's names.
    Printed(Box<Problem>, String),
    /// A value stands there twice, and is not told.
    OmittedDuplicate,
}

impl FieldError {
    /// A field that must be there.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), problem: Problem::Required, detail: detail.into() }
    }

    /// A value that breaks a rule.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), problem: Problem::Invalid(value.into()), detail: detail.into() }
    }

    /// A value that is none of the allowed ones; the detail lists them in the order given (which differs by field).
    pub fn not_supported<'a>(
        field: impl Into<String>,
        value: impl Into<Value>,
        allowed: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let allowed: Vec<String> = allowed.into_iter().map(|one| format!("{one:?}")).collect();
        let detail = if allowed.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", allowed.join(", "))
        };
        Self { field: field.into(), problem: Problem::NotSupported(value.into()), detail }
    }

    /// A value that stands there twice.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { field: field.into(), problem: Problem::Duplicate(value.into()), detail: String::new() }
    }

    /// Something that may not be done here.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), problem: Problem::Forbidden, detail: detail.into() }
    }

    /// Text that is longer than `limit` bytes.
    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let bytes = if limit == 1 { "byte" } else { "bytes" };
        Self {
            field: field.into(),
            problem: Problem::TooLong,
            detail: format!("may not be more than {limit} {bytes}"),
        }
    }

    /// A mistake whose value is not told (`field.OmitValueType`).
    pub fn omitted(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), problem: Problem::Omitted, detail: detail.into() }
    }

    /// The value printed as this text, where Kubernetes does not print it as JSON with sorted keys.
    #[must_use]
    pub fn printed(self, text: impl Into<String>) -> Self {
        Self { problem: Problem::Printed(Box::new(self.problem), text.into()), ..self }
    }

    /// The machine-readable `reason` of a status cause.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.problem.reason()
    }

    /// The sentence without the field, as it stands in a status cause.
    #[must_use]
    pub fn body(&self) -> String {
        let start = match &self.problem {
            Problem::Printed(of, text) => format!("{}: {text}", of.start()),
            Problem::TooMany(count) => format!("{}: {count}", self.problem.start()),
            problem => match problem.value() {
                Some(value) => format!("{}: {}", problem.start(), shown(value)),
                None => problem.start().to_owned(),
            },
        };
        if self.detail.is_empty() { start } else { format!("{start}: {}", self.detail) }
    }
}

impl Problem {
    fn reason(&self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid(_) | Self::Omitted => "FieldValueInvalid",
            Self::TypeInvalid(_) => "FieldValueTypeInvalid",
            Self::NotSupported(_) => "FieldValueNotSupported",
            Self::Duplicate(_) | Self::OmittedDuplicate => "FieldValueDuplicate",
            Self::NotFound(_) => "FieldValueNotFound",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany(_) => "FieldValueTooMany",
            Self::Internal => "InternalError",
            Self::Printed(of, _) => of.reason(),
        }
    }

    fn start(&self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid(_) | Self::TypeInvalid(_) | Self::Omitted => "Invalid value",
            Self::NotSupported(_) => "Unsupported value",
            Self::Duplicate(_) | Self::OmittedDuplicate => "Duplicate value",
            Self::NotFound(_) => "Not found",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany(_) => "Too many",
            Self::Internal => "Internal error",
            Self::Printed(of, _) => of.start(),
        }
    }

    fn value(&self) -> Option<&Value> {
        match self {
            Self::Invalid(value)
            | Self::TypeInvalid(value)
            | Self::NotSupported(value)
            | Self::Duplicate(value)
            | Self::NotFound(value) => Some(value),
            _ => None,
        }
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// A value as Kubernetes prints it in messages: text quoted as Go does, the rest as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) if number.is_f64() => go::printed(number.as_f64().unwrap_or_default()),
        other => go::json(other),
    }
}

/// Text in quotes, as Go's `%q` writes it.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\0'..='\u{1f}' | '\u{7f}' => out.push_str(&format!("\\x{:02x}", u32::from(character))),
            other if other.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(other))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_is_not_told_of_as_several() {
        assert_eq!(FieldError::too_long("a", 1).to_string(), "a: Too long: may not be more than 1 byte");
        assert_eq!(FieldError::too_long("a", 2).to_string(), "a: Too long: may not be more than 2 bytes");
    }

    #[test]
    fn text_is_quoted_as_go_quotes_it() {
        let error = FieldError::invalid("a", "x\u{7}\u{1}\n\"\\é\u{85}", "no");
        assert_eq!(error.body(), r#"Invalid value: "x\a\x01\n\"\\é\u0085": no"#);
    }
}
