//! Regular expressions (k8s.io/apiserver/pkg/cel/library/regex.go). Constant patterns are compiled with the program.

use regex::Regex;

use super::Implementation;
use crate::error::EvaluationError;
use crate::eval::pattern::Pattern;
use crate::value::{Text, Value};

pub(super) fn implementation(overload: &str) -> Option<Implementation> {
    Some(match overload {
        "matches" | "matches_string" => |args| {
            let (text, regex) = parts(args, "")?;
            Ok(Value::Bool(regex.is_match(text)))
        },
        "string_find_string" => |args| {
            let (text, regex) = parts(args, "Illegal regex: ")?;
            Ok(find(&regex, text))
        },
        "string_find_all_string" | "string_find_all_string_int" => |args| {
            let (text, regex) = parts(args, "Illegal regex: ")?;
            Ok(find_all(&regex, text, args.get(2)))
        },
        _ => return None,
    })
}

fn parts<'v, 'a>(args: &'v [Value<'a>], prefix: &str) -> Result<(&'v Text<'a>, Regex), EvaluationError> {
    match args {
        [Value::String(text), Value::String(pattern), ..] => {
            let pattern =
                Pattern::new(pattern).map_err(|error| EvaluationError::new(format!("{prefix}{error}")))?;
            Ok((text, pattern.regex))
        }
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn part<'a>(text: &Text<'a>, start: usize, end: usize) -> Value<'a> {
    Value::String(match text {
        Text::Borrowed(text) => Text::Borrowed(&text[start..end]),
        Text::Shared(text) => Text::Shared(text[start..end].into()),
    })
}

/// The first match, or nothing.
pub(crate) fn find<'a>(regex: &Regex, text: &Text<'a>) -> Value<'a> {
    match regex.find(text) {
        Some(found) => part(text, found.start(), found.end()),
        None => Value::String(Text::Borrowed("")),
    }
}

/// All matches, or so many at most.
pub(crate) fn find_all<'a>(regex: &Regex, text: &Text<'a>, limit: Option<&Value<'a>>) -> Value<'a> {
    let most = match limit {
        Some(Value::Int(limit)) => usize::try_from(*limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let found = regex.find_iter(text).take(most).map(|found| part(text, found.start(), found.end()));
    found.collect::<Vec<_>>().into()
}
