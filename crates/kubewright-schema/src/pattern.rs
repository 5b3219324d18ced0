//! The patterns of schemas: expressions as Go's `regexp` understands them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock, Weak};

use kubewright_cel::pattern::translated;
use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};

/// The most bytes that a compiled pattern may take.
const SIZE_LIMIT: usize = 32 << 20;
/// The most bytes that all compiled patterns of a definition may take.
const ALL_LIMIT: usize = 128 << 20;
/// The sizes that a pattern is tried to be compiled in, the smallest first: what it takes is known by the one that it fits in.
const SIZES: [usize; 6] = [32 << 10, 256 << 10, 1 << 20, 4 << 20, 12 << 20, SIZE_LIMIT];

/// What a pattern is compiled to, once somebody needs it.
type Expression = OnceLock<Option<Regex>>;

/// The patterns that somebody has, by their texts. A schema may say the same one in thousands of places, and is read anew for
/// each default: it is compiled, and kept, once.
static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Known {
    expressions: BTreeMap<Box<str>, Weak<Expression>>,
    /// How many there may be before those are looked for that nobody has any more.
    most: usize,
}

impl Known {
    /// That of a text.
    fn get(&mut self, text: &str) -> Arc<Expression> {
        if let Some(known) = self.expressions.get(text).and_then(Weak::upgrade) {
            return known;
        }
        if self.expressions.len() >= self.most {
            const LEAST: usize = 256;
            self.expressions.retain(|_, one| one.strong_count() > 0);
            self.most = (2 * self.expressions.len()).max(LEAST);
        }
        let new = Arc::default();
        self.expressions.insert(text.into(), Arc::downgrade(&new));
        new
    }
}

/// A pattern, compiled when a text is first held against it.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// As the author wrote it.
    pub text: Box<str>,
    /// All patterns of one text have the same.
    expression: Arc<Expression>,
}

impl Pattern {
    /// A pattern of a schema; whether it is one, `Patterns` says.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), expression: KNOWN.lock().get(text) }
    }

    /// Whether the text has a match; nothing matches what is no pattern.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let compile = || compiled(&translated(&self.text).ok()?, SIZE_LIMIT);
        let expression = self.expression.get_or_init(compile);
        expression.as_ref().is_some_and(|expression| expression.is_match(text))
    }

    /// Whether to compile it may be much work.
    #[must_use]
    pub fn is_large(&self) -> bool {
        const LARGE: usize = 64 * 1024;
        self.size() > LARGE
    }

    /// About how much work it is to compile it.
    #[must_use]
    pub fn size(&self) -> usize {
        kubewright_cel::pattern_size(&self.text)
    }
}

fn compiled(expression: &str, size: usize) -> Option<Regex> {
    RegexBuilder::new(expression).size_limit(size).build().ok()
}

/// The patterns of one definition, each looked at once, however often it stands there. What compiling all of them takes is bounded:
/// Go's `regexp` bounds each alone, with 128 MiB.
#[derive(Debug)]
pub struct Patterns {
    /// Each with what is wrong with it. They are kept compiled, for who looks at defaults.
    known: BTreeMap<String, (Pattern, Option<String>)>,
    /// How many bytes they may still take.
    left: usize,
}

impl Default for Patterns {
    fn default() -> Self {
        Self { known: BTreeMap::new(), left: ALL_LIMIT }
    }
}

impl Patterns {
    /// What is wrong with a pattern, in the words of Go's compiler.
    pub fn mistake(&mut self, text: &str) -> Option<&str> {
        if !self.known.contains_key(text) {
            let pattern = Pattern::new(text);
            let mistake = self.look_at(text).map(|found| drop(pattern.expression.set(Some(found)))).err();
            self.known.insert(text.to_owned(), (pattern, mistake));
        }
        self.known.get(text)?.1.as_deref()
    }

    fn look_at(&mut self, text: &str) -> Result<Regex, String> {
        let expression = translated(text)?;
        for size in SIZES {
            if size > self.left {
                break;
            }
            if let Some(found) = compiled(&expression, size) {
                self.left -= size;
                return Ok(found);
            }
        }
        // What was tried is not tried again and again.
        self.left = self.left.saturating_sub(SIZE_LIMIT);
        Err(format!("error parsing regexp: expression too large: `{text}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(pattern: &str) -> Option<String> {
        Patterns::default().mistake(pattern).map(str::to_owned)
    }

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
            assert!(Pattern::new(pattern).matches(text), "{pattern} {:?}", mistake(pattern));
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
            assert_eq!(mistake(pattern), Some(expected), "{pattern}");
        }
        assert!(!Pattern::new("(").matches("("));
    }

    #[test]
    fn a_definition_cannot_ask_for_more_than_its_patterns_may_take() {
        let mut patterns = Patterns { left: 4 << 20, ..Patterns::default() };
        let large = |number: usize| format!("^[^a]{{1000}}{number}$");
        let taken: Vec<bool> = (0..20).map(|number| patterns.mistake(&large(number)).is_none()).collect();
        let accepted = taken.iter().filter(|taken| **taken).count();
        assert!((4..20).contains(&accepted), "{accepted}");
        assert!(taken.is_sorted_by(|one, next| one >= next), "the first ones are taken");
        // The same pattern takes nothing more, and a mistake stays one.
        let left = patterns.left;
        assert_eq!(patterns.mistake(&large(0)), None);
        let why = format!("error parsing regexp: expression too large: `{}`", large(19));
        assert_eq!(patterns.mistake(&large(19)), Some(&*why));
        assert_eq!(patterns.left, left);
        let far_too_large = r"^(\pL{1000}){1000}$";
        let mut patterns = Patterns::default();
        assert!(patterns.mistake(far_too_large).is_some());
        assert_eq!(patterns.left, ALL_LIMIT - SIZE_LIMIT, "what was in vain is counted too");
    }

    #[test]
    fn a_pattern_is_compiled_when_it_is_first_asked_and_once_for_all_that_say_it() {
        let (one, same, other) = ["^q{1,3}$", "^q{1,3}$", "^q{1,4}$"].map(Pattern::new).into();
        assert!(one.expression.get().is_none());
        assert!(same.matches("qq") && !same.matches("qqqq"));
        assert!(one.expression.get().is_some() && other.expression.get().is_none());
        let mut patterns = Patterns::default();
        assert_eq!(patterns.mistake("^q{1,5}$"), None);
        assert!(Pattern::new("^q{1,5}$").expression.get().is_some(), "who has looked at it has compiled it");
    }

    #[test]
    fn patterns_that_nobody_has_are_forgotten() {
        let mut known = Known::default();
        let kept = known.get("kept");
        for number in 0..10_000 {
            known.get(&number.to_string());
        }
        assert!(known.expressions.len() < 1000, "{}", known.expressions.len());
        assert!(Arc::ptr_eq(&kept, &known.get("kept")));
    }

    #[test]
    fn a_pattern_is_large_for_its_length_its_counts_and_its_classes() {
        for small in
            ["^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", "^.{1,253}$", r"^\p{L}+$", "{", "a{,}", "^a{3,}$"]
        {
            assert!(!Pattern::new(small).is_large(), "{small}");
        }
        for large in ["^(a{100}b){100}$".to_owned(), r"^\p{L}{1000}$".to_owned(), "a".repeat(80_000)] {
            assert!(Pattern::new(&large).is_large(), "{large}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_an_answer(pattern in ".*", text in ".*") {
            let _ = Pattern::new(&pattern).matches(&text);
        }
    }
}
