//! Values as errors show them where kube-apiserver prints one of its internal structs (`structs.txt`), and how two of them differ.

use std::fmt::Write;

use kubewright_spec::struct_fields;
use serde_json::Value;

use super::{printed, version};

/// How many lines stand around a difference.
const CONTEXT: usize = 3;

/// A value of a type (`core.PodSpec`, `[]core.PodIP`) as Go writes it as JSON: all fields in their order, by their names in Go.
pub(super) fn of_type(name: &str, value: &Value) -> String {
    let mut out = String::new();
    print(&mut out, name, Some(value));
    kubewright_meta::go::in_html(&out).into_owned()
}

/// How two values of a type differ, in the format of `diff -u` without its head (`k8s.io/apimachinery/pkg/util/diff`). Empty where
/// they are alike.
pub(super) fn difference(name: &str, old: &Value, new: &Value) -> String {
    let [old, new] = [old, new].map(|value| indented(&of_type(name, value)));
    let [old, new] =
        [&old, &new].map(|text| text.lines().map(|line| format!("{line}\n")).collect::<Vec<_>>());
    // The first two lines name the files.
    difflib::unified_diff(&old, &new, "", "", "", "", CONTEXT).iter().skip(2).map(String::as_str).collect()
}

fn print(out: &mut String, of: &str, value: Option<&Value>) {
    let present = value.filter(|value| !value.is_null());
    match (of, present) {
        (of, _) if of.starts_with('*') => match present {
            Some(value) => print(out, &of[1..], Some(value)),
            None => out.push_str("null"),
        },
        (of, Some(Value::Array(items))) if of.starts_with("[]") => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(out, &mut (index == 0));
                print(out, &of[2..], Some(item));
            }
            out.push(']');
        }
        (of, Some(Value::Object(entries))) if of.starts_with("{}") => {
            out.push('{');
            for (index, (key, entry)) in entries.iter().enumerate() {
                separate(out, &mut (index == 0));
                let _ = write!(out, "{}:", Value::from(key.as_str()));
                print(out, &of[2..], Some(entry));
            }
            out.push('}');
        }
        (of, _) if of.starts_with("meta/") => {
            out.push_str(&printed::plain_of_type(version::current(), of, value.unwrap_or(&Value::Null)));
        }
        (of, None) if of.starts_with("[]") || of.starts_with("{}") => out.push_str("null"),
        (of, _) if of.contains('.') => {
            out.push('{');
            print_members(out, of, present, &mut true);
            out.push('}');
        }
        (_, Some(value)) => {
            let _ = write!(out, "{value}");
        }
        (of, None) => out.push_str(printed::zero(of)),
    }
}

fn print_members(out: &mut String, of: &str, object: Option<&Value>, is_first: &mut bool) {
    for field in struct_fields(version::current(), of) {
        if field.name == "." && field.of == "meta/v1.ObjectMeta" {
            let meta = object.and_then(|object| object.get("metadata")).unwrap_or(&Value::Null);
            let published = printed::plain_of_type(version::current(), field.of, meta);
            let members = &published[1..published.len() - 1];
            if !members.is_empty() {
                separate(out, is_first);
                out.push_str(members);
            }
        } else if field.name == "." {
            print_members(out, field.of, object, is_first);
        } else {
            separate(out, is_first);
            let _ = write!(out, "\"{}\":", field.name);
            print(out, field.of, object.and_then(|object| object.get(field.json)));
        }
    }
}

fn separate(out: &mut String, is_first: &mut bool) {
    if !std::mem::take(is_first) {
        out.push(',');
    }
}

/// JSON without blanks, a line for each value, with one blank for each level.
fn indented(json: &str) -> String {
    let mut out = String::new();
    let (mut depth, mut in_text, mut is_escaped) = (0, false, false);
    let mut characters = json.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth));
    };
    while let Some(character) = characters.next() {
        if in_text {
            out.push(character);
            in_text = is_escaped || character != '"';
            is_escaped = character == '\\' && !is_escaped;
            continue;
        }
        match character {
            '{' | '[' if characters.next_if(|next| matches!(next, '}' | ']')).is_some() => {
                out.push_str(if character == '{' { "{}" } else { "[]" });
            }
            '{' | '[' => {
                depth += 1;
                out.push(character);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth -= 1;
                line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(character);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => {
                in_text = other == '"';
                out.push(other);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use kubewright_spec::Version;
    use serde_json::json;

    use super::*;

    fn in_1_36<T>(made: impl FnOnce() -> T) -> T {
        version::judged_by(Version::V1_36, made)
    }

    #[test]
    fn a_struct_is_printed_with_all_its_fields_by_their_names_in_go() {
        let value = json!({"rules": [{"succeededCount": 1}]});
        let said = in_1_36(|| of_type("*batch.SuccessPolicy", &value));
        assert_eq!(said, r#"{"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}"#);
        assert_eq!(in_1_36(|| of_type("*batch.SuccessPolicy", &Value::Null)), "null");
    }

    #[test]
    fn members_of_an_inlined_struct_of_the_api_are_those_of_json() {
        let template = json!({"metadata": {"labels": {"a": "<b>"}}, "spec": {}});
        let said = in_1_36(|| of_type("core.PodTemplateSpec", &template));
        assert!(said.starts_with(r#"{"labels":{"a":"\u003cb\u003e"},"Spec":{"Volumes":null,"#), "{said:.80}");
    }

    #[test]
    fn a_difference_has_three_lines_around_it() {
        let claim =
            |mode: &str| json!({"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}});
        let (old, new) = (claim("ReadWriteOnce"), claim("ReadOnlyMany"));
        assert_eq!(
            in_1_36(|| difference("core.PersistentVolumeClaimSpec", &old, &new)),
            "@@ -1,6 +1,6 @@\n {\n  \"AccessModes\": [\n-  \"ReadWriteOnce\"\n+  \"ReadOnlyMany\"\n  ],\n  \"Selector\": null,\n  \
             \"Resources\": {\n"
        );
        assert_eq!(in_1_36(|| difference("core.PersistentVolumeClaimSpec", &old, &old)), "");
    }

    #[test]
    fn braces_and_quotes_in_texts_are_no_structure() {
        assert_eq!(
            indented(r#"{"a":"{\"[,:","b":{},"c":[]}"#),
            "{\n \"a\": \"{\\\"[,:\",\n \"b\": {},\n \"c\": []\n}"
        );
    }
}
