//! Regular expressions (k8s.io/apiserver/pkg/cel/library/regex.go). Constant patterns are compiled with the program.

use regex::Regex;

use super::Implementation;
use crate::error::EvaluationError;
use crate::value::{Text, Value};

/// What stands before the reason why a pattern is none, but for `matches`.
pub(crate) const ILLEGAL: &str = "Illegal regex: ";

/// Texts are matched by the evaluator, which keeps the patterns that it has compiled: what comes here is something else.
pub(super) fn implementation(overload: &str) -> Option<Implementation> {
    let matches = matches!(
        overload,
        "matches"
            | "matches_string"
            | "string_find_string"
            | "string_find_all_string"
            | "string_find_all_string_int"
    );
    matches.then_some(|_| Err(EvaluationError::no_such_overload()))
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
