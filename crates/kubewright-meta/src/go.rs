//! Values as Go writes them, where that is not how Rust does: in JSON (`encoding/json`), and in messages (`fmt`).

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

/// JSON with what Go escapes in texts: what HTML knows is escaped, and so are two separators of lines. These stand in texts only.
#[must_use]
pub fn in_html(json: &str) -> Cow<'_, str> {
    const SPECIAL: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];
    if !json.contains(SPECIAL) {
        return json.into();
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for one in json.chars() {
        if SPECIAL.contains(&one) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(one));
        } else {
            escaped.push(one);
        }
    }
    escaped.into()
}

/// A text in quotes as Go's package `time` writes it: what is no printable ASCII stands there byte by byte.
#[must_use]
pub fn quoted_by_time(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            b' '..=0x7f => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted.push('"');
    quoted
}

/// A value as Go's JSON has it.
#[must_use]
pub fn json(value: &Value) -> String {
    let mut json = String::new();
    write_json(value, &mut json);
    in_html(&json).into_owned()
}

fn write_json(value: &Value, json: &mut String) {
    match value {
        Value::Number(number) if number.is_f64() => {
            json.push_str(&float(number.as_f64().unwrap_or_default()));
        }
        Value::Array(items) => {
            json.push('[');
            for (at, item) in items.iter().enumerate() {
                json.push_str(if at > 0 { "," } else { "" });
                write_json(item, json);
            }
            json.push(']');
        }
        Value::Object(members) => {
            json.push('{');
            for (at, (name, member)) in members.iter().enumerate() {
                json.push_str(if at > 0 { "," } else { "" });
                let _ = write!(json, "{}:", Value::from(name.as_str()));
                write_json(member, json);
            }
            json.push('}');
        }
        other => {
            let _ = write!(json, "{other}");
        }
    }
}

/// A number as Go's JSON has it: with an exponent where it is very small or very great.
#[must_use]
pub fn float(number: f64) -> String {
    if number == 0.0 || (1e-6..1e21).contains(&number.abs()) {
        return number.to_string();
    }
    let scientific = format!("{number:e}");
    if scientific.contains("e-") { scientific } else { scientific.replace('e', "e+") }
}

/// A number as Go's `%v` has it: with an exponent from a million on.
#[must_use]
pub fn printed(number: f64) -> String {
    let plain = number.to_string();
    if number == 0.0 || (1e-4..1e6).contains(&number.abs()) {
        return plain;
    }
    let scientific = format!("{number:e}");
    match scientific.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_an_exponent_where_they_are_very_small_or_very_great() {
        for (number, text) in
            [(1e21, "1e+21"), (-1e-7, "-1e-7"), (1e20, "100000000000000000000"), (0.5, "0.5"), (1.0, "1")]
        {
            assert_eq!(float(number), text);
        }
    }

    #[test]
    fn numbers_and_texts_within_a_value_are_written_as_go_writes_them() {
        let value = serde_json::json!({"a": [1000.0, 1e21, 1, "x<y"], "b": null});
        assert_eq!(json(&value), r#"{"a":[1000,1e+21,1,"x\u003cy"],"b":null}"#);
    }

    #[test]
    fn what_is_no_ascii_is_told_byte_by_byte() {
        assert_eq!(quoted_by_time("1\u{b5}s \"\\\n"), r#""1\xc2\xb5s \"\\\x0a""#);
    }

    #[test]
    fn numbers_in_messages_have_an_exponent_from_a_million_on() {
        for (number, text) in [
            (1000.0, "1000"),
            (1.5, "1.5"),
            (1e20, "1e+20"),
            (1e6, "1e+06"),
            (-2.5e-7, "-2.5e-07"),
            (0.0, "0"),
        ] {
            assert_eq!(printed(number), text);
        }
    }
}
