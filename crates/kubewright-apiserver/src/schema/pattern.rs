//! The patterns of schemas: expressions as Go's `regexp` understands them.

use regex::Regex;

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
            expression: Regex::new(&translated(text)).map_err(|error| mistake(text, &error)),
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

/// Where Go's syntax and that of the `regex` crate differ: Go's `\d`, `\w`, `\s` and `\b` mean ASCII, and in brackets
/// `[`, `&&`, `--` and `~~` are nothing special.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars().peekable();
    let mut brackets = Brackets::Outside;
    while let Some(one) = rest.next() {
        match (one, brackets) {
            ('\\', _) => match rest.next() {
                Some(escaped) => out.push_str(&escape(escaped, brackets)),
                None => out.push('\\'),
            },
            ('[', Brackets::Outside) => {
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if rest.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
                brackets = Brackets::Inside;
            }
            ('[', Brackets::Inside) if rest.peek() == Some(&':') => {
                out.push('[');
                for class in rest.by_ref() {
                    out.push(class);
                    if class == ']' {
                        break;
                    }
                }
            }
            ('[' | '&' | '~', Brackets::Inside) => {
                out.push('\\');
                out.push(one);
            }
            ('-', Brackets::Inside) if out.ends_with('-') => out.push_str("\\-"),
            (']', Brackets::Inside) => {
                out.push(']');
                brackets = Brackets::Outside;
            }
            _ => out.push(one),
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Brackets {
    Outside,
    Inside,
}

fn escape(escaped: char, brackets: Brackets) -> String {
    match (escaped, brackets) {
        ('d', _) => "[0-9]".to_owned(),
        ('D', _) => "[^0-9]".to_owned(),
        ('w', _) => "[0-9A-Za-z_]".to_owned(),
        ('W', _) => "[^0-9A-Za-z_]".to_owned(),
        ('s', _) => "[\\t\\n\\f\\r ]".to_owned(),
        ('S', _) => "[^\\t\\n\\f\\r ]".to_owned(),
        ('b', Brackets::Outside) => "(?-u:\\b)".to_owned(),
        ('B', Brackets::Outside) => "(?-u:\\B)".to_owned(),
        _ => format!("\\{escaped}"),
    }
}

/// The compiler's complaint, in Go's words where the two tell the same.
fn mistake(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let at = |mark: char| pattern.rfind(mark).map_or(pattern, |start| &pattern[start..]);
    let why = if text.contains("unclosed group") {
        format!("missing closing ): `{pattern}`")
    } else if text.contains("unopened group") {
        format!("unexpected ): `{pattern}`")
    } else if text.contains("unclosed character class") {
        format!("missing closing ]: `{}`", at('['))
    } else if text.contains("repetition operator missing expression") {
        let operator: String = pattern.chars().filter(|one| "*+?".contains(*one)).take(1).collect();
        format!("missing argument to repetition operator: `{operator}`")
    } else {
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    };
    format!("error parsing regexp: {why}")
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
    }

    #[test]
    fn mistakes_are_told_as_go_tells_them() {
        assert_eq!(Pattern::new("(").mistake(), Some("error parsing regexp: missing closing ): `(`"));
        assert_eq!(Pattern::new("a)").mistake(), Some("error parsing regexp: unexpected ): `a)`"));
        assert_eq!(Pattern::new("[a").mistake(), Some("error parsing regexp: missing closing ]: `[a`"));
        assert_eq!(
            Pattern::new("*").mistake(),
            Some("error parsing regexp: missing argument to repetition operator: `*`")
        );
        assert!(!Pattern::new("(").matches("("));
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_an_answer(pattern in ".*", text in ".*") {
            let _ = Pattern::new(&pattern).matches(&text);
        }
    }
}
