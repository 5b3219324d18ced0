//! Functions of text (cel-go's ext/strings.go, version 2). Indexes count code points.

use super::{Implementation, MAX_TEXT, formatting, show, text, too_large};
use crate::error::EvaluationError;
use crate::value::{List, Text, Value};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn find(overload: &str) -> Option<Implementation> {
    Some(match overload {
        "contains_string" => |args| compare(args, |text, part| text.contains(part)),
        "starts_with_string" => |args| compare(args, |text, part| text.starts_with(part)),
        "ends_with_string" => |args| compare(args, |text, part| text.ends_with(part)),
        "string_char_at_int" => char_at,
        "string_index_of_string" | "string_index_of_string_int" => index_of,
        "string_last_index_of_string" | "string_last_index_of_string_int" => last_index_of,
        "string_lower_ascii" => |args| transform(args, str::to_ascii_lowercase),
        "string_upper_ascii" => |args| transform(args, str::to_ascii_uppercase),
        "string_replace_string_string" | "string_replace_string_string_int" => replace,
        "string_split_string" | "string_split_string_int" => split,
        "string_substring_int" | "string_substring_int_int" => substring,
        "string_trim" => trim,
        "list_join" | "list_join_string" => join,
        "strings_quote" => |args| transform(args, quote),
        "string_format" => format,
        "string_jsonpatch_escapeKey_string" => {
            |args| transform(args, |key| key.replace('~', "~0").replace('/', "~1"))
        }
        _ => return None,
    })
}

fn no_overload<'a>() -> Outcome<'a> {
    Err(EvaluationError::no_such_overload())
}

fn compare<'a>(args: &[Value<'a>], holds: fn(&str, &str) -> bool) -> Outcome<'a> {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(holds(text, part))),
        _ => no_overload(),
    }
}

fn transform<'a>(args: &[Value<'a>], make: fn(&str) -> String) -> Outcome<'a> {
    match args {
        [Value::String(given)] => text(make(given)),
        _ => no_overload(),
    }
}

fn out_of_range(index: i64) -> EvaluationError {
    EvaluationError::new(format!("index out of range: {index}"))
}

/// A part of the text, borrowed if the text is.
fn part<'a>(whole: &Text<'a>, start: usize, end: usize) -> Value<'a> {
    Value::String(match whole {
        Text::Borrowed(whole) => Text::Borrowed(&whole[start..end]),
        Text::Shared(whole) => Text::Shared(whole[start..end].into()),
    })
}

/// The byte at which the code point with this index begins; the end of the text counts as one more.
fn byte_at(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(index)
}

fn char_at<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text), Value::Int(index)] = args else { return no_overload() };
    let start = byte_at(text, *index).ok_or_else(|| out_of_range(*index))?;
    let length = text[start..].chars().next().map_or(0, char::len_utf8);
    Ok(part(text, start, start + length))
}

fn found<'a>(text: &str, byte: Option<usize>) -> Outcome<'a> {
    let index = byte.map(|byte| text[..byte].chars().count());
    Ok(Value::Int(index.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1)))
}

fn index_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, wanted, offset) = match args {
        [Value::String(text), Value::String(wanted)] => (text, wanted, 0),
        [Value::String(text), Value::String(wanted), Value::Int(offset)] => (text, wanted, *offset),
        _ => return no_overload(),
    };
    if wanted.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    let Some(start) = byte_at(text, offset) else { return Ok(Value::Int(-1)) };
    found(text, text[start..].find(&**wanted).map(|byte| start + byte))
}

fn last_index_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, wanted, offset) = match args {
        [Value::String(text), Value::String(wanted)] => {
            let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            if wanted.is_empty() {
                return Ok(Value::Int(length));
            }
            if text.len() < wanted.len() {
                return Ok(Value::Int(-1));
            }
            (text, wanted, length - 1)
        }
        [Value::String(text), Value::String(wanted), Value::Int(offset)] => (text, wanted, *offset),
        _ => return no_overload(),
    };
    if wanted.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    let Some(start) = byte_at(text, offset).filter(|start| *start < text.len()) else {
        return Ok(Value::Int(-1));
    };
    let mut end = (start + wanted.len()).min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    let last = text[..end].rfind(&**wanted).filter(|byte| *byte <= start);
    found(text, last)
}

fn replace<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (whole, old, new, count) = match args {
        [Value::String(whole), Value::String(old), Value::String(new)] => (whole, old, new, None),
        [Value::String(whole), Value::String(old), Value::String(new), Value::Int(count)] => {
            (whole, old, new, usize::try_from(*count).ok())
        }
        _ => return no_overload(),
    };
    let most = if old.is_empty() { whole.chars().count() + 1 } else { whole.matches(&**old).count() };
    let replaced = most.min(count.unwrap_or(usize::MAX));
    let size = replaced.checked_mul(new.len()).and_then(|added| added.checked_add(whole.len()));
    if size.is_none_or(|size| size > MAX_TEXT) {
        return Err(too_large());
    }
    text(whole.replacen(&**old, new, replaced))
}

fn split<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (whole, separator, count) = match args {
        [Value::String(whole), Value::String(separator)] => (whole, separator, -1),
        [Value::String(whole), Value::String(separator), Value::Int(count)] => (whole, separator, *count),
        _ => return no_overload(),
    };
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut start = 0;
    if most > 0 && !(separator.is_empty() && whole.is_empty()) {
        while parts.len() + 1 < most {
            let rest = &whole[start..];
            let end = if separator.is_empty() {
                rest.chars().next().map(char::len_utf8).filter(|length| *length < rest.len())
            } else {
                rest.find(&**separator)
            };
            let Some(end) = end else { break };
            parts.push(part(whole, start, start + end));
            start += end + separator.len();
        }
        parts.push(part(whole, start, whole.len()));
    }
    Ok(Value::List(List::new(parts)))
}

fn substring<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::String(text), Value::Int(start)] => {
            let from = byte_at(text, *start).ok_or_else(|| out_of_range(*start))?;
            Ok(part(text, from, text.len()))
        }
        [Value::String(text), Value::Int(start), Value::Int(end)] => {
            if start > end {
                let message = format!("invalid substring range. start: {start}, end: {end}");
                return Err(EvaluationError::new(message));
            }
            let from = byte_at(text, *start).ok_or_else(|| out_of_range(*start))?;
            let to = byte_at(text, *end).ok_or_else(|| out_of_range(*end))?;
            Ok(part(text, from, to))
        }
        _ => no_overload(),
    }
}

fn trim<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text)] = args else { return no_overload() };
    let start = text.len() - text.trim_start().len();
    Ok(part(text, start, start + text.trim().len()))
}

fn join<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return no_overload(),
    };
    let mut joined = String::new();
    for (index, item) in list.iter().enumerate() {
        let item = item?;
        let Value::String(item) = &item else {
            return Err(EvaluationError::new(format!("join: invalid input: {}", show(&item))));
        };
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(item);
        if joined.len() > MAX_TEXT {
            return Err(too_large());
        }
    }
    text(joined)
}

fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn format<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(pattern), Value::List(list)] = args else { return no_overload() };
    let values = list.values()?;
    let made = formatting::format_values(pattern, &values)
        .map_err(|error| EvaluationError::new(error.to_string()))?;
    text(made)
}
