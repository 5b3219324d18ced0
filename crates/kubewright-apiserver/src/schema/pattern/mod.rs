//! The patterns of schemas: expressions as Go's `regexp` understands them.

mod go;

use regex::{Regex, RegexBuilder};

/// The most bytes that a compiled pattern may take.
const SIZE_LIMIT: usize = 32 << 20;

/// A pattern: its text, and the expression when it is one.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// As the author wrote it.
    pub text: Box<str>,
    expression: Result<Regex, String>,
}

impl Pattern {
    /// Compiles a pattern.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            text: text.into(),
            expression: go::translated(text).and_then(|expression| {
                RegexBuilder::new(&expression)
                    .size_limit(SIZE_LIMIT)
                    .build()
                    .map_err(|_| format!("error parsing regexp: expression too large: `{text}`"))
            }),
        }
    }

    /// What is wrong with it, in the words of Go's compiler.
    #[must_use]
    pub fn mistake(&self) -> Option<&str> {
        self.expression.as_ref().err().map(String::as_str)
    }

    /// Whether the text has a match.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.expression.as_ref().is_ok_and(|expression| expression.is_match(text))
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn classes_are_of_ascii_as_in_go() {
        let digits = Pattern::new(r"^\d+$");
        assert!(digits.matches("2024") && !digits.matches("٣"));
        let word = Pattern::new(r"^[\w.-]+$");
        assert!(word.matches("a.b-c_9") && !word.matches("é"));
        assert!(Pattern::new(r"\bfoo\b").matches("a foo b"));
    }

    #[test]
    fn brackets_mean_what_they_mean_in_go() {
        assert!(Pattern::new(r"^[[]x]$").matches("[x]"));
        assert!(Pattern::new(r"^[]a]+$").matches("]a"));
        assert!(Pattern::new(r"^[a&&b]+$").matches("&"));
        assert!(Pattern::new(r"^[+--]+$").matches(","));
        assert!(Pattern::new(r"^[[:alpha:]_]+$").matches("ab_"));
        assert!(Pattern::new(r"^[^\d]+$").matches("ab"));
        for (pattern, text) in [
            ("^a{,3}$", "a{,3}"),
            ("^{$", "{"),
            (r"^\Qa.b\E$", "a.b"),
            ("^(?<name>x)+$", "xx"),
            (r"^\x41\x{42}\103\z", "ABC"),
            (r"^[a\-z]$", "-"),
            (r"^\/\_$", "/_"),
        ] {
            assert!(Pattern::new(pattern).matches(text), "{pattern} {:?}", Pattern::new(pattern).mistake());
        }
    }

    #[test]
    fn mistakes_are_told_as_go_tells_them() {
        for (pattern, why) in [
            ("(", "missing closing ): `(`"),
            ("a)", "unexpected ): `a)`"),
            ("[a", "missing closing ]: `[a`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("x{2,1}", "invalid repeat count: `{2,1}`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a++", "invalid nested repetition operator: `++`"),
            ("(?=x)", "invalid or unsupported Perl syntax: `(?=`"),
            ("^(?!foo)", "invalid or unsupported Perl syntax: `(?!`"),
            ("(?P<n", "invalid named capture: `(?P<n`"),
            ("\\", "trailing backslash at end of expression: ``"),
            ("[z-a]", "invalid character class range: `z-a`"),
            (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            (r"\Z", r"invalid escape sequence: `\Z`"),
            (r"\z\A\x41\pL\C", r"invalid escape sequence: `\C`"),
        ] {
            let expected = format!("error parsing regexp: {why}");
            assert_eq!(Pattern::new(pattern).mistake(), Some(expected.as_str()), "{pattern}");
        }
        assert!(!Pattern::new("(").matches("("));
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_an_answer(pattern in ".*", text in ".*") {
            let _ = Pattern::new(&pattern).matches(&text);
        }
    }
}
