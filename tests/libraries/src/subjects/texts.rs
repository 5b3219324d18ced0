//! Bodies: JSON and YAML.

use bytes::Bytes;
use kubewright_codec::{json as codec, yaml as yamls};
use serde_json::{Value, json};

use super::text;
use crate::dice::Dice;

pub(super) fn json(dice: &mut Dice) -> Value {
    const SPOILS: &[&str] = &[
        "{", "}", "[", "]", ",", ":", "\"", "\\", "0", "-", "e", " ", "\n", "t", "\u{1}", "é", "\\u00",
        "\\ud800", "//",
    ];
    let mut made = String::new();
    write_json(dice, 0, &mut made);
    if dice.chance(30) {
        made = dice.spoiled(&made, SPOILS);
    }
    json!({"text": made})
}

fn write_json(dice: &mut Dice, depth: usize, out: &mut String) {
    const SCALARS: &[&str] = &[
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "1.0",
        "1e3",
        "1E400",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "0.1",
        "123456789012345678901234567890",
        "\"a\"",
        "\"\"",
        "\"\\u00e9\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud800\"",
        "\"\\n\\t\\/\"",
        "01",
        "+1",
        ".5",
        "1.",
        "nul",
        "\"\\x\"",
        "\"\t\"",
        "-",
    ];
    match dice.below(if depth > 3 { 1 } else { 3 }) {
        0 => out.push_str(dice.one(SCALARS)),
        1 => {
            out.push('[');
            for at in 0..dice.below(3) {
                if at > 0 {
                    out.push(',');
                }
                write_json(dice, depth + 1, out);
            }
            out.push(']');
        }
        _ => {
            out.push('{');
            for at in 0..dice.below(4) {
                if at > 0 {
                    out.push_str(dice.one(&[",", ", ", " ,\n"]));
                }
                out.push_str(dice.one(&[
                    "\"a\"",
                    "\"b\"",
                    "\"A\"",
                    "\"\\u0061\"",
                    "\"\"",
                    "\"a.b\"",
                    "\"é\"",
                ]));
                out.push_str(dice.one(&[":", ": ", " :"]));
                write_json(dice, depth + 1, out);
            }
            out.push('}');
        }
    }
}

pub(super) fn json_of(case: &Value) -> Value {
    match codec::decode(text(case, "text").as_bytes()) {
        Ok(parsed) => {
            let strict: Vec<String> =
                parsed.repeated.iter().map(|path| format!("duplicate field {path:?}")).collect();
            json!({"value": parsed.value, "strict": strict})
        }
        Err(_) => json!({"refused": true}),
    }
}

pub(super) fn yaml(dice: &mut Dice) -> Value {
    const SCALARS: &[&str] = &[
        "a",
        "1",
        "1.0",
        "0x1f",
        "0o17",
        "017",
        "1_000",
        "yes",
        "no",
        "on",
        "~",
        "null",
        "Null",
        "true",
        "True",
        "\"q\\n\"",
        "'s''q'",
        "1e3",
        "2024-01-01",
        "2024-01-01T00:00:00Z",
        ".inf",
        "-.inf",
        ".nan",
        "!!str 1",
        "!!int \"1\"",
        "&x 1",
        "*x",
        "|\n    l1\n    l2",
        ">\n    f1\n    f2",
        "[1, a, {b: c}]",
        "{a: 1, b: [x]}",
        "",
        "a: b",
        "- 1",
        "'",
        "\"",
        "%",
        "@a",
        "`a",
        "0b11",
        "+1",
        "-0",
        "0.1e-3",
        "9223372036854775808",
        "1:30",
        "a #c",
        "#c",
        "!!binary YQ==",
        "<<",
        "=",
        "!!float 1",
        "? a",
        "a:b",
        "http://x",
        "0x",
        "1__0",
        "_1",
        "!!bool yes",
        "!!null x",
        "!x y",
    ];
    const KEYS: &[&str] =
        &["a", "b", "1", "true", "null", "\"q\"", "<<", "1.5", "a b", "~", "? x", "[a]", "yes", "0x10", "c"];
    let mut made = dice.word(&["", "", "", "---\n", "# c\n", "%YAML 1.1\n---\n", "\n", "--- \n"]);
    let mut indent = 0;
    for _ in 0..=dice.below(6) {
        let pad = "  ".repeat(indent);
        match dice.below(4) {
            0 => {
                made += &format!("{pad}{}:\n", dice.one(KEYS));
                indent += 1;
            }
            1 => made += &format!("{pad}- {}\n", dice.one(SCALARS)),
            _ => {
                made += &format!("{pad}{}: {}\n", dice.one(KEYS), dice.one(SCALARS));
                if dice.chance(30) {
                    indent = dice.below(indent + 1);
                }
            }
        }
    }
    if dice.chance(10) {
        made += dice.one(&["---\nb: 1\n", "...\n", "\t", "  x", "}", "- 1"]);
    }
    json!({"text": made})
}

pub(super) fn yaml_of(case: &Value) -> Value {
    match yamls::decode(&Bytes::copy_from_slice(text(case, "text").as_bytes())) {
        Ok(parsed) => json!({"value": parsed.value}),
        Err(_) => json!({"refused": true}),
    }
}
