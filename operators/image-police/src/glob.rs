//! Patterns for names and tags, as regular expressions: those of Rust and of CEL (RE2) mean the same.

use regex::Regex;

/// The regular expression for a pattern: `*` is anything without a slash (which a tag never has), `**` anything, `?` one
/// character that is no slash.
pub(crate) fn expression(pattern: &str) -> String {
    let mut expression = String::new();
    let mut rest = pattern.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '*' if rest.next_if_eq(&'*').is_some() => expression += ".*",
            '*' => expression += "[^/]*",
            '?' => expression += "[^/]",
            letter if letter.is_ascii_alphanumeric() => expression.push(letter),
            other => expression += &regex::escape(other.encode_utf8(&mut [0; 4])),
        }
    }
    expression
}

/// The expression that matches the whole of a text, compiled.
///
/// # Errors
/// When it is too large.
pub(crate) fn whole(expression: &str) -> Result<Regex, regex::Error> {
    Regex::new(&format!("^(?:{expression})$"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        whole(&expression(pattern)).expect("a pattern").is_match(text)
    }

    #[test]
    fn a_star_stops_at_a_slash_and_two_do_not() {
        assert!(matches("gcr.io/team/*", "gcr.io/team/app"));
        assert!(!matches("gcr.io/team/*", "gcr.io/team/app/part"));
        assert!(matches("gcr.io/**", "gcr.io/team/app/part"));
        assert!(!matches("gcr.io/*", "gcrxio/team"));
        assert!(matches("a?c", "abc") && !matches("a?c", "ac") && !matches("a?c", "a/c"));
        let tag = whole(&expression("1.14.*")).expect("a pattern");
        assert!(tag.is_match("1.14.2") && tag.is_match("1.14.2-alpine") && !tag.is_match("1.140"));
    }

    proptest! {
        #[test]
        fn a_text_without_stars_matches_itself_alone(text in "[a-z0-9._:/\\[\\]-]{1,40}", other in "[a-z./]{1,40}") {
            prop_assert!(matches(&text, &text));
            prop_assert_eq!(matches(&text, &other), text == other);
        }
    }
}
