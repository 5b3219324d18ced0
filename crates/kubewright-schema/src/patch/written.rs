//! Whether texts and numbers are written as Go writes them (`encoding/json`, which escapes `<`, `>` and `&`, too): `test` compares what a patch
//! says byte by byte with what Go has made of the object (`gopkg.in/evanphx/json-patch.v4`, `lazyNode.equal`).

use kubewright_meta::go::{float, in_html};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// An operation of a patch.
#[derive(Deserialize)]
struct Operation<'a> {
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

/// Of each operation of a patch whether all texts and numbers in its value are written so. Of one that is none, or where the members of one
/// stand twice, it is not said.
pub(super) fn tests(body: &[u8]) -> Vec<bool> {
    // Separators of lines are three bytes that begin so.
    let is_special = |byte: &u8| matches!(byte, b'\\' | b'<' | b'>' | b'&' | 0xe2);
    let is_in_number = |pair: &[u8]| pair[0].is_ascii_digit() && matches!(pair[1], b'.' | b'e' | b'E');
    if !body.iter().any(is_special) && !body.windows(2).any(is_in_number) {
        return Vec::new();
    }
    let operations: Vec<Option<Operation<'_>>> = serde_json::from_slice(body).unwrap_or_default();
    let value = |operation: Option<Operation<'_>>| operation?.value.map(RawValue::get).map(is_as_written);
    operations.into_iter().map(|operation| value(operation).unwrap_or(true)).collect()
}

/// Reads JSON once, however deep it is: each number, and each text that is no name of a member, must be as Go writes it.
fn is_as_written(raw: &str) -> bool {
    let mut rest = raw;
    while let Some((before, from)) = rest.find('"').map(|at| rest.split_at(at)) {
        if !are_numbers_as_written(before) {
            return false;
        }
        let Some(end) = end_of_text(from) else { return true };
        let (text, after) = from.split_at(end);
        rest = after;
        let is_name = after.trim_start().starts_with(':');
        if !is_name && !serde_json::from_str::<String>(text).is_ok_and(|said| as_go_writes(said) == text) {
            return false;
        }
    }
    are_numbers_as_written(rest)
}

/// Whether all numbers in JSON without texts are as Go writes what it has read of them: without an exponent or a fraction that says nothing.
fn are_numbers_as_written(json: &str) -> bool {
    let numbers = json.split(|one: char| !one.is_ascii_alphanumeric() && !"+-.".contains(one));
    numbers.filter(|number| number.contains(['.', 'e', 'E'])).all(|number| {
        // Words have one of these letters, too.
        number.parse().map_or(true, |read| float(read) == number)
    })
}

/// Where the text ends that JSON begins with, behind its quote.
fn end_of_text(json: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map(|at| at + 2)
}

/// A text in quotes.
fn as_go_writes(text: String) -> String {
    in_html(&Value::String(text).to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_compared_as_it_is_written() {
        for (raw, is_so) in [
            (r#""plain/é""#, true),
            (r#""x>y""#, false),
            (r#""x\u003ey""#, true),
            (r#""x\u003Ey""#, false),
            (r#""plain\/é""#, false),
            (r#""plain\u002f""#, false),
            (r#""a\nb\t\"\\\u0001""#, true),
            (r#"{"a": ["x<y"], "b": 1}"#, false),
            (r#"{"x<y": [1, null, true, "\u0026"]}"#, true),
            (r#"{ "x<y" : "a" , "b" : [ "\\" , "\"<" ] }"#, false),
            (r#"{"a\"<": "\"", "<": "b"}"#, true),
            ("1.50", false),
            ("1.5", true),
            ("[1, -0.25, 1e+21, true, false, null]", true),
            ("1.0", false),
            (r#"{"a": "1.0", "b": 1e3}"#, false),
            (r#"{"a": 1.0, "b": "b"}"#, false),
        ] {
            assert_eq!(is_as_written(raw), is_so, "{raw}");
        }
    }

    #[test]
    fn a_deep_value_is_read_once() {
        let deep = |text: &str| format!("{}{text}{}", "[".repeat(9_000), "]".repeat(9_000));
        assert!(is_as_written(&deep(r#""a""#)));
        assert!(!is_as_written(&deep(r#""<""#)));
    }

    #[test]
    fn only_patches_with_something_special_are_looked_at() {
        assert_eq!(tests(br#"[{"op":"test","value":"a"}]"#), Vec::<bool>::new());
        let body = br#"[{"op":"test","path":"/a","value":"<"}, null, {"op":"test","path":"/a"}]"#;
        assert_eq!(tests(body), [false, true, true]);
        assert_eq!(tests(br#"[{"op":"test","path":"/a","value":1.0}]"#), [false]);
        assert_eq!(tests(b"<"), Vec::<bool>::new());
    }
}
