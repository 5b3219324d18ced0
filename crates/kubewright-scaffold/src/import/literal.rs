//! Values and words of a definition, as Rust has them.

use serde_json::Value;

/// A value as `serde_json::json!` reads it.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        // What has no type is an i32 to Rust.
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) if i32::try_from(number).is_err() => format!("{number}_i64"),
            (None, Some(number)) => format!("{number}_u64"),
            _ => number.to_string(),
        },
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, of)| format!("{name:?}: {}", literal(of))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// The description of a schema as a comment. What is indented or fenced in it is no Rust, and is not to be taken for a test.
pub(super) fn documentation(schema: &Value, indent: &str) -> String {
    let (mut text, mut fenced) = (String::new(), false);
    for line in schema["description"].as_str().unwrap_or_default().lines() {
        let mut line = line.trim().replace(['\r', '\t'], " ");
        if line.starts_with("```") {
            if !fenced && line.chars().all(|c| c == '`') {
                line += "text";
            }
            fenced = !fenced;
        }
        text += format!("{indent}/// {line}").trim_end();
        text.push('\n');
    }
    if fenced {
        text += &format!("{indent}/// ```\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_those_of_rust() {
        let value =
            json!({"a": [1, -2, 4_294_967_295_u64, u64::MAX, 0.5, null, true], "b": {"c": "\"\u{8}\n"}});
        assert_eq!(
            literal(&value),
            r#"{"a": [1, -2, 4294967295_i64, 18446744073709551615_u64, 0.5, null, true], "b": {"c": "\"\u{8}\n"}}"#
        );
    }

    #[test]
    fn what_is_in_a_description_is_not_taken_for_a_test() {
        let told = |text: &str| documentation(&json!({"description": text}), "");
        assert_eq!(told("Such as:\n    a: b\n"), "/// Such as:\n/// a: b\n");
        assert_eq!(told("```\na\n```\nb"), "/// ```text\n/// a\n/// ```\n/// b\n");
        assert_eq!(told("```yaml\na"), "/// ```yaml\n/// a\n/// ```\n");
        assert_eq!(told("a\rb\tc\n\nc"), "/// a b c\n///\n/// c\n");
    }
}
