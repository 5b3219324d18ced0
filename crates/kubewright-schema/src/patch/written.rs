//! Whether texts are written as Go writes them (`encoding/json`, which escapes `<`, `>` and `&`, too): `test` compares what a patch says byte
//! by byte with what Go has made of the object (`gopkg.in/evanphx/json-patch.v4`, `lazyNode.equal`).

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::value::RawValue;

/// An operation of a patch.
#[derive(Deserialize)]
struct Operation<'a> {
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

/// Of each operation of a patch whether all texts in its value are written so. Of one that is none, or where the members of one stand twice,
/// it is not said.
pub(super) fn tests(body: &[u8]) -> Vec<bool> {
    // Separators of lines are three bytes that begin so.
    let is_special = |byte: &u8| matches!(byte, b'\\' | b'<' | b'>' | b'&' | 0xe2);
    if !body.iter().any(is_special) {
        return Vec::new();
    }
    let operations: Vec<Option<Operation<'_>>> = serde_json::from_slice(body).unwrap_or_default();
    let value = |operation: Option<Operation<'_>>| operation?.value.map(RawValue::get).map(is_as_written);
    operations.into_iter().map(|operation| value(operation).unwrap_or(true)).collect()
}

fn is_as_written(raw: &str) -> bool {
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<String>(raw).is_ok_and(|text| as_go_writes(&text) == raw),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
            items.into_iter().all(|item| is_as_written(item.get()))
        }
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(raw).unwrap_or_default();
            members.into_values().all(|member| is_as_written(member.get()))
        }
        _ => true,
    }
}

/// A text in quotes.
fn as_go_writes(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    written.push('"');
    for one in text.chars() {
        match one {
            '"' | '\\' => written.extend(['\\', one]),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            '\u{8}' => written.push_str("\\b"),
            '\u{c}' => written.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..'\u{20}' => {
                let _ = write!(written, "\\u{:04x}", u32::from(one));
            }
            one => written.push(one),
        }
    }
    written.push('"');
    written
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
            ("1.50", true),
        ] {
            assert_eq!(is_as_written(raw), is_so, "{raw}");
        }
    }

    #[test]
    fn only_patches_with_something_special_are_looked_at() {
        assert_eq!(tests(br#"[{"op":"test","value":"a"}]"#), Vec::<bool>::new());
        let body = br#"[{"op":"test","path":"/a","value":"<"}, null, {"op":"test","path":"/a"}]"#;
        assert_eq!(tests(body), [false, true, true]);
        assert_eq!(tests(b"<"), Vec::<bool>::new());
    }
}
