//! Regular expressions: RE2's syntax, in linear time and bounded space.

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};

/// The most bytes that a compiled pattern may take.
pub(super) const SIZE_LIMIT: usize = 1 << 20;

/// A compiled pattern, and how long its text was.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    /// In code points; what matching costs depends on it.
    pub(crate) length: u64,
}

impl Pattern {
    /// Compiles a pattern.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(&as_go_means(text));
        let regex = builder.size_limit(SIZE_LIMIT).dfa_size_limit(SIZE_LIMIT).build();
        let regex = regex.map_err(|_| explain(text))?;
        Ok(Self { regex, length: text.chars().count() as u64 })
    }
}

/// About how much work it is to compile a pattern, by its text alone, in characters: an upper bound, as if all that is repeated were
/// repeated one within the other; a class of Unicode counts for the many ranges that it has.
#[must_use]
pub fn pattern_size(text: &str) -> usize {
    const LEAST: usize = 200;
    const CLASS: usize = 200;
    let most = |rest: &str| rest.split('}').next()?.rsplit(',').find_map(|count| count.parse::<usize>().ok());
    let repeats = text.split('{').skip(1).filter_map(most).filter(|count| *count > 1);
    let classes = text.matches("\\p").chain(text.matches("\\P")).count();
    repeats.fold(LEAST + text.len() + classes * CLASS, usize::saturating_mul)
}

/// The pattern with what Go's syntax means differently: the classes `\d`, `\w`, `\s` and the boundary `\b` know ASCII only.
fn as_go_means(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut translated = String::with_capacity(text.len() + 16);
    let mut in_class = false;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let escaped = characters.next();
                match (escaped, in_class) {
                    (Some('d'), false) => translated.push_str("[0-9]"),
                    (Some('d'), true) => translated.push_str("0-9"),
                    (Some('D'), _) => translated.push_str("[^0-9]"),
                    (Some('w'), false) => translated.push_str("[0-9A-Za-z_]"),
                    (Some('w'), true) => translated.push_str("0-9A-Za-z_"),
                    (Some('W'), _) => translated.push_str("[^0-9A-Za-z_]"),
                    (Some('s'), false) => translated.push_str("[\\t\\n\\x0C\\r ]"),
                    (Some('s'), true) => translated.push_str("\\t\\n\\x0C\\r "),
                    (Some('S'), _) => translated.push_str("[^\\t\\n\\x0C\\r ]"),
                    (Some('b'), false) => translated.push_str("(?-u:\\b)"),
                    (Some('B'), false) => translated.push_str("(?-u:\\B)"),
                    (other, _) => {
                        translated.push('\\');
                        translated.extend(other);
                    }
                }
                continue;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        translated.push(character);
    }
    Cow::Owned(translated)
}

/// What is wrong with a pattern, as Go says it where that is easy to tell.
fn explain(text: &str) -> String {
    let unclosed = |open: char, close: char| {
        let count = |wanted: char| {
            let mut escaped = false;
            let matches = text.chars().filter(|character| {
                let found = !escaped && *character == wanted;
                escaped = !escaped && *character == '\\';
                found
            });
            matches.count()
        };
        (count(open), count(close))
    };
    let (opened, closed) = unclosed('(', ')');
    if let Some(start) = text.find('[').filter(|start| !text[*start..].contains(']')) {
        return format!("error parsing regexp: missing closing ]: `{}`", &text[start..]);
    }
    match opened.cmp(&closed) {
        std::cmp::Ordering::Greater => format!("error parsing regexp: missing closing ): `{text}`"),
        std::cmp::Ordering::Less => format!("error parsing regexp: unexpected ): `{text}`"),
        std::cmp::Ordering::Equal => match text.chars().next() {
            Some(first @ ('*' | '+' | '?')) => {
                format!("error parsing regexp: missing argument to repetition operator: `{first}`")
            }
            _ => format!("error parsing regexp: invalid regular expression: `{text}`"),
        },
    }
}
