//! How the name of a JSON field is spelled in an expression.
//!
//! Source: k8s.io/apiserver/pkg/cel/escaping.go.

use std::borrow::Cow;

/// The words that CEL keeps for itself.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Whether `word` is a word of the language, and therefore escaped as `__word__`.
#[must_use]
pub fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word).is_ok()
}

/// The CEL identifier for the field `name`, or `None` if expressions cannot reach it.
///
/// `__` becomes `__underscores__`, `.` `__dot__`, `-` `__dash__`, `/` `__slash__`, and a reserved word `__word__`.
#[must_use]
pub fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
        return None;
    }
    if is_reserved(name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/')) {
        return None;
    }
    if !name.contains("__") && !name.contains(['-', '.', '/']) {
        return Some(Cow::Borrowed(name));
    }
    let mut escaped = String::with_capacity(name.len() + 8);
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let (written, length) = match first {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            _ => (&rest[..1], 1),
        };
        escaped.push_str(written);
        rest = &rest[length..];
    }
    Some(Cow::Owned(escaped))
}

/// The name of the field that the identifier stands for, or `None` if it holds an escape sequence that there is not.
#[must_use]
pub fn unescape(identifier: &str) -> Option<Cow<'_, str>> {
    if !identifier.contains("__") {
        return Some(Cow::Borrowed(identifier));
    }
    let mut name = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(start) = rest.find("__") {
        let Some(sequence) = sequence_at(&rest[start..]) else {
            // Not the start of a sequence here; one may start at the next underscore.
            name.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
            continue;
        };
        name.push_str(&rest[..start]);
        let whole = sequence.len() + 4;
        name.push_str(match sequence {
            "underscores" => "__",
            "dot" => ".",
            "dash" => "-",
            "slash" => "/",
            word if is_reserved(word) && whole == identifier.len() => word,
            _ => return None,
        });
        rest = &rest[start + whole..];
    }
    name.push_str(rest);
    Some(Cow::Owned(name))
}

/// What stands between the underscores, if `text` starts with `__word__` (a word without underscores).
fn sequence_at(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("__")?;
    let end = inner.find('_')?;
    (end > 0 && inner[end..].starts_with("__")).then(|| &inner[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_escaped_as_kubernetes_documents_it() {
        for (name, identifier) in [
            ("spec", "spec"),
            ("_x", "_x"),
            ("x-prop", "x__dash__prop"),
            ("redact__d", "redact__underscores__d"),
            ("string", "string"),
            ("namespace", "__namespace__"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("___", "__underscores___"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(identifier));
            assert_eq!(unescape(identifier).as_deref(), Some(name));
        }
        for unreachable in ["", "1a", "a b", "ä", "a$"] {
            assert_eq!(escape(unreachable), None);
        }
        for wrong in ["__nothing__", "a__namespace__"] {
            assert_eq!(unescape(wrong), None);
        }
    }

    #[test]
    fn the_reserved_words_are_sorted() {
        assert!(RESERVED.is_sorted());
    }

    proptest! {
        #[test]
        fn unescaping_gives_the_name_back(name in "[a-z_./-]{1,12}") {
            prop_assume!(!is_reserved(&name));
            let identifier = escape(&name).unwrap_or_default();
            let back = unescape(&identifier);
            prop_assert_eq!(back.as_deref(), Some(name.as_str()));
        }
    }
}
